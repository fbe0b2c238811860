"""The content of the files that a study's settings name: part of what parties consent to.

`start = "model.json"` and `public = "rows.csv"` name files of whoever runs the study. A path says nothing of what is in
them. So the SHA-256 of each file's bytes stands in the study, in its table [content], and is part of its digest. It is
put there when a study file is read where the files are (`tacit coordinator announce`, `tacit run`). A file that has
other content than the study says is refused, before anybody is asked.

    [content]
    start = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import StudyError

if TYPE_CHECKING:
    from tacit.studies.study import Study

FILE_SETTINGS = ("public", "start")
"""Settings of methods that may name a file whose content everybody may see."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def checked_content(content: Mapping[str, object], settings: Mapping[str, object]) -> dict[str, str]:
    """The digests, if each is one, and is of a file that a setting names."""
    found: dict[str, str] = {}
    for key, digest in content.items():
        if key not in FILE_SETTINGS or not isinstance(settings.get(key), str):
            raise StudyError(f"content.{key} is the content of no file: method.{key} names none; leave it out")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise StudyError(f"content.{key} must be a SHA-256 of 64 hexadecimal digits; leave it out to have it made")
        found[key] = digest
    return found


def file_digest(path: str, key: str) -> str:
    """The SHA-256 of a file's bytes."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StudyError(
            f"method.{key} = {path!r} cannot be read ({reason}), and its content is part of the study; put it there, "
            f"or take the study as it was announced, which says content.{key}"
        ) from error


def with_content(study: Study) -> Study:
    """The study with the content of every file that its settings name, or a `StudyError` if one has other content.

    A file that is not here is taken on trust if the study says what is in it: whoever runs the study will need it.
    """
    found = dict(study.content)
    for key in FILE_SETTINGS:
        path = study.settings.get(key)
        if not isinstance(path, str) or (key in found and not Path(path).exists()):
            continue
        digest = file_digest(path, key)
        if found.setdefault(key, digest) != digest:
            raise StudyError(
                f"method.{key} = {path!r} has other content (SHA-256 {digest[:12]}...) than the study says "
                f"({found[key][:12]}...); bring the file back, or make another study"
            )
    return study if found == study.content else replace(study, content=found)


def check_content(study: Study) -> None:
    """Refuse to run a study whose files are missing, or have other content than parties consented to."""
    if with_content(study).content != study.content:
        raise StudyError("the study names files and does not say their content; read it from its file")
    for key, digest in study.content.items():
        path = str(study.settings[key])
        if file_digest(path, key) != digest:
            raise StudyError(f"method.{key} = {path!r} has other content than parties consented to")
