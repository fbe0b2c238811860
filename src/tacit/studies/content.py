"""The content of the files that a study's settings name: part of what parties consent to.

`start = "model.json"` and `public = "rows.csv"` name files of whoever runs the study. A path says nothing of what is in
them. So the SHA-256 of each file's bytes stands in the study, in its table [content], and is part of its digest. It is
put there when a study file is read where the files are (`tacit coordinator announce`, `tacit run`).

    [content]
    start = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"

Files do not travel. How their content reaches a party, and who checks it:
1. `public` of an ensemble: its rows, encoded, stand in the question. `public_rows` is the digest of exactly these. A
   party's guard refuses others (`federation.agreement`).
2. `public` of a hypothesis transfer: what travels is worked out from it, and is held against the plan's bounds only.
3. `start`: the coordinator begins there. Parties are asked about models, at the same cost whichever these are.
Whoever runs the study is stopped before anybody is asked if a file has other content than the study states.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import wire
from tacit.data.schema import Schema
from tacit.errors import StudyError

if TYPE_CHECKING:
    from tacit.studies.study import Study

FILE_SETTINGS = ("public", "start")
"""Settings of methods that may name a file whose content everybody may see."""

ROWS = "public_rows"
"""The name of the rows in `public` as parties are asked about them."""

_SHOWS_ROWS = ("ensemble",)  # methods whose questions hold the rows of `public` as they are
_DIGEST = re.compile(r"[0-9a-f]{64}")


def checked_content(content: Mapping[str, object], settings: Mapping[str, object]) -> dict[str, str]:
    """The digests, if each is one, and is of a file that a setting names."""
    found: dict[str, str] = {}
    for key, digest in content.items():
        setting = "public" if key == ROWS else key
        if setting not in FILE_SETTINGS or not isinstance(settings.get(setting), str):
            raise StudyError(f"content.{key} is the content of no file: method.{setting} names none; leave it out")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise StudyError(f"content.{key} must be a SHA-256 of 64 hexadecimal digits; leave it out to have it made")
        found[key] = digest
    return found


def unstated(study: Study) -> str:
    """The first setting that names a file whose content the study does not state; empty if it states all."""
    wanted = [(key, key) for key in FILE_SETTINGS]
    wanted += [("public", ROWS)] if study.method in _SHOWS_ROWS else []
    named = (key for key, stated in wanted if isinstance(study.settings.get(key), str) and stated not in study.content)
    return next(named, "")


def with_content(study: Study) -> Study:
    """The study with the content of every file that its settings name, or a `StudyError` if one has other content.

    A file that is not here is taken on trust if the study states what is in it: whoever runs the study will need it.
    """
    found = dict(study.content)
    for key in FILE_SETTINGS:
        path = study.settings.get(key)
        if isinstance(path, str) and not (key in found and not Path(path).exists()):
            for name, digest in _digests(study.method, study.schema, key, path).items():
                if found.setdefault(name, digest) != digest:
                    raise StudyError(
                        f"method.{key} = {path!r} has other content (SHA-256 {digest[:12]}...) than the study states "
                        f"({found[name][:12]}...); bring the file back, or make another study"
                    )
    return study if found == study.content else replace(study, content=found)


def check_content(study: Study) -> None:
    """Refuse to run a study whose files are missing, or have other content than it states.

    Raises:
        StudyError: that names the file.
    """
    for key in FILE_SETTINGS:
        if isinstance(path := study.settings.get(key), str):
            file_digest(path, key)  # it must be here
    if with_content(study).content != study.content:
        key = unstated(study)
        raise StudyError(f"method.{key} names a file whose content the study does not state; read it from its file")


def file_digest(path: str, key: str) -> str:
    """The SHA-256 of a file's bytes."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StudyError(
            f"method.{key} = {path!r} cannot be read ({reason}), and its content is part of the study; put it there, "
            f"or take the study as it was announced, which states content.{key}"
        ) from error


def _digests(method: str | None, schema: Schema, key: str, path: str) -> dict[str, str]:
    """The content of one file, as it is and as parties are asked about it."""
    from tacit.data.rows import auxiliary_rows  # with pandas, which joining does without

    found = {key: file_digest(path, key)}
    if key == "public" and method in _SHOWS_ROWS:
        found[ROWS] = wire.digest(auxiliary_rows(path, schema))
    return found
