"""Models on disk: JSON, so that nothing in the file can run and anyone can read it.

`Method.save` writes such a file and `tacit.load` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.errors import DataError, SettingError
from tacit.report.facts import RunFacts, facts_from_dict, facts_to_dict
from tacit.storage import write_whole

FORMAT = "tacit-model"
VERSION = 3
READABLE = (1, 2, 3)  # the rows of version 1 are taken apart by tacit.report.row; 2 knows no study and no columns


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """All that a model's file holds.

    Attributes:
        method: the method's name.
        schema: the columns from which it was learned.
        classes: the labels, as `predict` gives them.
        state: the arrays that make up the model.
        n_rounds: how many rounds the run took.
        delta: the promise's probability of failing, as the run settled it.
        facts: the run, for the report; they hold the settings and the guarantee.
    """

    method: str
    schema: Schema
    classes: npt.NDArray[Any]
    state: Mapping[str, npt.NDArray[Any]]
    n_rounds: int
    delta: float
    facts: RunFacts

    def write(self, path: str | Path) -> None:
        """Write the file; it appears whole or not at all."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "schema": self.schema.to_dict(),
            "classes": self.classes.tolist(),
            "state": {name: array.tolist() for name, array in self.state.items()},
            "n_rounds": self.n_rounds,
            "delta": self.delta,
            "facts": facts_to_dict(self.facts),
        }
        try:
            text = json.dumps(document, indent=1)
        except TypeError as error:
            raise SettingError(
                f"this {self.facts.method} has a setting that cannot be written as JSON: {error}"
            ) from error
        folder = Path(path).parent
        if not folder.is_dir():
            raise SettingError(f"{path} cannot be written: there is no folder {str(folder)!r}; make it first")
        write_whole(path, text)

    @classmethod
    def read(cls, path: str | Path) -> ModelFile:
        """The file that `write` wrote."""
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise DataError(
                f"{path} cannot be read: {error.strerror}; give the path of a file that `model.save` wrote"
            ) from error
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: bytes, path: str) -> ModelFile:
        """The content of such a file; `path` is what errors call it."""
        try:
            document = json.loads(text.decode("utf-8"))
        except ValueError as error:
            raise DataError(f"{path} is not a model file: it is not JSON") from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise DataError(f"{path} is not a model file; `model.save(path)` writes one")
        if document.get("version") not in READABLE:
            raise DataError(
                f"{path} has format version {document.get('version')}; this release reads versions 1 to {VERSION}"
            )
        try:
            return cls._of(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path} is a damaged model file: {error!r}") from error

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> ModelFile:
        facts = facts_from_dict(document["facts"])
        if facts.guarantee is None:
            raise ValueError("it has no guarantee")
        return cls(
            method=str(document["method"]),
            schema=Schema.from_dict(document["schema"]),
            classes=np.array(document["classes"]),
            state={name: np.array(values) for name, values in document["state"].items()},
            n_rounds=int(document["n_rounds"]),
            delta=float(document["delta"]),
            facts=facts,
        )
