"""The study: what is asked of the parties, and the file that says it.

A study is public. A party reads it before it takes part and consents to its `digest()`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, cast

from tacit.data.feature import Numeric
from tacit.data.schema import Schema
from tacit.errors import StudyError
from tacit.studies.content import checked_content, with_content
from tacit.studies.reading import BOUND_ADVICE, named, read_study
from tacit.studies.request import FederationRequest, PrivacyRequest, checked_settings
from tacit.studies.stop import EnrolmentRequest, StopRequest
from tacit.studies.strict import nearest
from tacit.studies.toml import toml_lines
from tacit.visible import unseen

__all__ = ["FederationRequest", "PrivacyRequest", "Study"]

_LONGEST = {"study.name": 100, "study.purpose": 2000}  # characters: what an owner reads fits on a page
_DIGEST_VERSION = b"tacit study 1\n"
_NAME = re.compile(r"\w[^/\\:]*")


@dataclass(frozen=True, kw_only=True)
class Study:
    """One question to several parties; `privacy` and `federation` may be given as the tables of a study file are.

    Guarantees:
        Two studies with the same `digest()` ask the same. `Study.parse(study.to_toml()) == study`. No text of it
        holds a character that a reader would not see.

    Example:
        >>> import tacit
        >>> study = tacit.Study.parse('''
        ... [study]
        ... name = "heart"
        ... purpose = "Which findings predict heart disease?"
        ... [target]
        ... name = "disease"
        ... classes = ["no", "yes"]
        ... [[feature]]
        ... name = "age"
        ... kind = "numeric"
        ... low = 20
        ... high = 90
        ... [privacy]
        ... epsilon = 1.0
        ... ''')
        >>> study.schema.feature_names
        ('age',)
        >>> len(study.digest())
        64
    """

    name: str
    purpose: str
    schema: Schema
    method: str | None = None  # None: the default method for what `privacy` asks
    settings: Mapping[str, object] = field(default_factory=dict)
    privacy: PrivacyRequest | None = None
    federation: FederationRequest = field(default_factory=FederationRequest)
    stop: StopRequest | None = None  # the looks that are planned; None: a run is a run
    enrolment: EnrolmentRequest | None = None
    content: Mapping[str, str] = field(default_factory=dict)  # of the files that settings name: setting -> SHA-256

    def __post_init__(self) -> None:
        """Refuse what a study file could not say."""
        if not isinstance(self.schema, Schema):
            raise StudyError(f"schema is a {type(self.schema).__name__}; give a tacit.Schema(features, target)")
        if isinstance(self.privacy, int | float):
            raise StudyError(f"privacy is a number; write privacy={{'epsilon': {self.privacy:g}}}")
        if isinstance(self.privacy, Mapping):
            object.__setattr__(self, "privacy", _made(PrivacyRequest, "privacy", self.privacy))
        if isinstance(self.federation, Mapping):
            object.__setattr__(self, "federation", _made(FederationRequest, "federation", self.federation))
        for key, value in (("study.name", self.name), ("study.purpose", self.purpose), ("method.name", self.method)):
            if value is not None and not value.strip():
                raise StudyError(f"{key} is empty; a party must be able to read what it consents to")
            if value is not None and len(value) > _LONGEST.get(key, math.inf):
                raise StudyError(f"{key} has {len(value):,} characters; say it in {_LONGEST[key]:,}")
        if not _NAME.fullmatch(self.name):
            raise StudyError(
                f"study.name = {self.name!r} cannot name a folder or a file; begin with a letter or digit, and use no "
                f"/, \\ or :"
            )
        for feature in self.schema.features:
            if isinstance(feature, Numeric) and feature.bounds is None:
                raise StudyError(f"feature {feature.name!r}: low is missing; {BOUND_ADVICE}")
        if self.person in (*self.schema.feature_names, self.schema.target.name):
            raise StudyError(
                f"privacy.person = {self.person!r} is a column that the model uses; name one that only says whose a "
                f"record is"
            )
        object.__setattr__(self, "settings", checked_settings(self.settings))
        object.__setattr__(self, "content", checked_content(self.content, self.settings))
        if self.stop is not None:
            self.stop.check(self.schema, self.enrolment)
        elif self.enrolment is not None:
            raise StudyError("an [enrolment] needs looks: give [stop] looks, or enrolment.records")
        _check_visible(_as_written(self.as_dict()))

    def __eq__(self, other: object) -> bool:
        """Whether both say the same; one that can also be run in code (`studies.in_code`) is no other study."""
        if not isinstance(other, Study):
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(Study))

    @property
    def person(self) -> str | None:
        """The column that says whose a record is, where the promise is for persons."""
        return None if self.privacy is None else self.privacy.person

    @property
    def aside(self) -> tuple[str, ...]:
        """Columns that a file for this study may have beside those of the model."""
        return () if self.person is None else (self.person,)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, known_methods: Collection[str] | None = None) -> Self:
        """The study in a file; whatever is wrong with it is a `StudyError` that starts with the file's name."""
        source = os.fspath(path)
        try:
            text = Path(path).read_bytes().decode("utf-8-sig")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StudyError(f"{source}: cannot be read ({reason}); give the path of a study file") from error
        except UnicodeDecodeError as error:
            raise StudyError(f"{source}: is not UTF-8 text at byte {error.start}; save it as UTF-8") from None
        with named(source):
            return cast(Self, with_content(cls.parse(text, source=source, known_methods=known_methods)))

    @classmethod
    def parse(cls, text: str, source: str = "the study file", *, known_methods: Collection[str] | None = None) -> Self:
        """The study that `text` says; with `known_methods`, the method must be one of them."""
        with named(source):
            return cls(**read_study(text, source, known_methods))

    def as_dict(self) -> dict[str, object]:
        """Plain values: all that a party consents to."""
        return {
            "name": self.name,
            "purpose": self.purpose,
            "schema": self.schema.to_dict(),
            "method": {"name": self.method, "settings": dict(self.settings)},
            "privacy": None if self.privacy is None else self.privacy.as_dict(),
            "federation": self.federation.as_dict(),
            **self._later_tables(),
        }

    def _later_tables(self) -> dict[str, dict[str, object]]:
        """Tables that older studies do not know: left out where they say nothing, so that those keep their digest."""
        tables: dict[str, dict[str, object]] = {
            "stop": {} if self.stop is None else self.stop.as_dict(),
            "enrolment": {} if self.enrolment is None else self.enrolment.as_dict(),
            "content": {**dict(sorted(self.content.items()))},
        }
        return {name: table for name, table in tables.items() if table}

    def digest(self) -> str:
        """The SHA-256 of the canonical JSON form and its version: the same for the same study, on every machine."""
        canonical = json.dumps(
            _without_infinity(self.as_dict()), sort_keys=True, separators=(",", ":"), allow_nan=False
        )
        return hashlib.sha256(_DIGEST_VERSION + canonical.encode("ascii")).hexdigest()

    def to_toml(self) -> str:
        """The study file that reads back as this study."""
        schema = self.schema.to_dict()
        head = {"name": self.name, "purpose": self.purpose}
        head |= {key: schema[key] for key in ("norm_bound", "coding", "ignore") if key in schema}
        parts = [["[study]", *toml_lines(head)], ["[target]", *toml_lines(schema["target"])]]
        parts += [["[[feature]]", *toml_lines(feature)] for feature in schema["features"]]
        if self.method is not None:
            parts.append(["[method]", *toml_lines({"name": self.method, **self.settings})])
        if self.privacy is not None:
            parts.append(["[privacy]", *toml_lines(self.privacy.as_dict())])
        parts.append(["[federation]", *toml_lines(self.federation.as_dict())])
        parts += [[f"[{name}]", *toml_lines(table)] for name, table in self._later_tables().items()]
        return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _made(kind: type[Any], table: str, values: Mapping[str, Any]) -> Any:
    """A table of a study file, given as plain values."""
    known = [one.name for one in fields(kind)]
    for key in values:
        if key not in known:
            close = nearest(key, known)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise StudyError(f"{table} has an unknown key {key!r}; {hint}")
    if table == "privacy" and "epsilon" not in values:
        raise StudyError("privacy.epsilon is missing; give it (1 is usual), or leave privacy out")
    listed = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    if listed.get("person") is not None:
        listed.setdefault("unit", "person")
    return kind(**listed)


def _as_written(form: dict[str, Any]) -> dict[str, object]:
    """A study's plain values under the keys that a study file has."""
    schema, method = form["schema"], form["method"]
    return {
        "study": {"name": form["name"], "purpose": form["purpose"], "ignore": schema.get("ignore", ())},
        "target": schema["target"],
        "feature": schema["features"],
        "method": {"name": method["name"], **method["settings"]},
        "privacy": form["privacy"],
        "federation": form["federation"],
        "stop": form.get("stop"),
    }


def _check_visible(value: object, path: str = "") -> None:
    """Refuse a text, or a key, that holds what a reader would not see."""
    match value:
        case str() if found := unseen(value):
            raise StudyError(
                f"{path} has {found}, which nobody sees and which can hide or move what stands beside it; "
                f"write it without, on one line"
            )
        case Mapping():
            for key, item in value.items():
                _check_visible(str(key), f"{path} (a key)")
                _check_visible(item, f"{path}.{key}" if path else str(key))
        case list() | tuple():
            for item in value:
                _check_visible(item, path)


def _without_infinity(value: object) -> object:
    """`value` with infinities as JSON can hold them, and as no setting can be written: no setting is null."""
    match value:
        case float() if math.isinf(value):
            return [None, "inf" if value > 0 else "-inf"]
        case dict():
            return {key: _without_infinity(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_infinity(item) for item in value]
        case _:
            return value
