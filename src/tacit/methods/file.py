"""Models on disk: JSON, so that nothing in the file can run and anyone can read it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import tacit.methods as methods
from tacit.data.schema import Schema
from tacit.errors import DataError, SettingError
from tacit.methods.method import Method
from tacit.report.facts import facts_from_dict, facts_to_dict

FORMAT = "tacit-model"
VERSION = 1


def save(model: Method, path: Path) -> None:
    """Write a fitted model; the file appears whole or not at all."""
    facts = facts_to_dict(model.facts_)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "method": model.name,
        "schema": model.schema_.to_dict(),
        "classes": model.classes_.tolist(),
        "state": {name: array.tolist() for name, array in model._state().items()},
        "n_rounds": model.n_rounds_,
        "facts": facts,
    }
    try:
        text = json.dumps(document, indent=1)
    except TypeError as error:
        raise SettingError(
            f"this {type(model).__name__} has a setting that cannot be written as JSON: {error}"
        ) from error
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).replace(path)


def load(path: str | Path) -> Method:
    """The fitted model that `save` wrote to `path`."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not a model file: it is not JSON") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DataError(f"{path} is not a model file; `model.save(path)` writes one")
    if document.get("version") != VERSION:
        raise DataError(f"{path} has format version {document.get('version')}; this release reads version {VERSION}")
    try:
        return _restore(document)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is a damaged model file: {error!r}") from error


def _restore(document: dict[str, Any]) -> Method:
    facts = facts_from_dict(document["facts"])
    model = methods.make(document["method"], dict(facts.settings))
    model.schema_ = Schema.from_dict(document["schema"])
    model.classes_ = np.array(document["classes"])
    model.n_features_in_ = model.schema_.n_columns
    model._restore({name: np.array(values) for name, values in document["state"].items()})
    model.n_rounds_ = int(document["n_rounds"])
    assert facts.guarantee is not None
    model.guarantee_ = facts.guarantee
    model.facts_ = facts
    model.metrics_ = {}
    return model
