"""What every report can do: become text, a self-contained page or JSON, and be saved whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import jinja2
from markupsafe import Markup

from tacit.errors import SettingError
from tacit.report.plain import Plain
from tacit.storage import write_whole

SUFFIXES = (".html", ".txt", ".json")


class Document(ABC):
    """A report that can be shown and saved.

    Guarantees:
        The same facts give the same text, page and JSON, byte for byte. A page loads nothing and runs nothing; names in
        it are text, whatever they contain. `save` leaves either the whole new file or what was there before.
    """

    @abstractmethod
    def text(self) -> str:
        """The report as plain text."""

    @abstractmethod
    def as_dict(self) -> dict[str, Plain]:
        """The report as strict JSON holds it; a number that is not finite is null."""

    @abstractmethod
    def _page_parts(self) -> tuple[str, dict[str, object]]:
        """The name of the template, and its values."""

    def html(self) -> str:
        """The report as one page that needs nothing else."""
        return self._render(whole=True)

    def _repr_html_(self) -> str:
        return self._render(whole=False)

    def json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to `path`: a page for `.html`, text for `.txt`, JSON for `.json`."""
        target = Path(path)
        match target.suffix.lower():
            case ".html":
                content = self.html()
            case ".txt":
                content = self.text()
            case ".json":
                content = self.json()
            case suffix:
                raise SettingError(
                    f"a report cannot be saved as {str(target)!r}: suffix {suffix!r} is none of {', '.join(SUFFIXES)}"
                )
        write_whole(target, content)
        return target

    def _id_prefix(self) -> str:
        """Letters that set the ids of this report apart from those of another on the same page."""
        return "r" + hashlib.sha256(self.json().encode()).hexdigest()[:8]

    def _render(self, *, whole: bool) -> str:
        template, values = self._page_parts()
        return self._fill(template, {**values, "whole": whole})

    def _fill(self, template: str, values: Mapping[str, object]) -> str:
        return _environment().get_template(template).render(values)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tacit.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["svg"] = Markup  # only for what tacit.report.svg made: text in it is already escaped
    return environment
