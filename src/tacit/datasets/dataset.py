"""What is known of a public data set before it is read, and how its files are found.

Files are read from the folder that the environment variable TACIT_DATA names (as <data set>/<file>); without it, they
are downloaded from their public home into a cache, where a home with a known checksum exists. Either way the SHA-256 is
checked: a changed file is an error, never other numbers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pooch

from tacit.data.schema import Schema
from tacit.errors import DataError

FOLDER_VARIABLE = "TACIT_DATA"
Frames = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class PublicFile:
    """One file, in every form in which it may be found."""

    name: str
    sha256: str  # of the file under its name
    plain_sha256: str | None = None  # of the file unpacked, under its name without .gz
    original_sha256: str | None = None  # of the same content as its home packs it, under its name
    url: str | None = None  # where its home gives the original, or the unpacked form, or the very file

    @property
    def plain_name(self) -> str:
        """The name of the unpacked form."""
        return self.name.removesuffix(".gz")

    @property
    def forms(self) -> dict[str, tuple[str, ...]]:
        """File names, with the checksums that are right under each."""
        packed = tuple(sha for sha in (self.sha256, self.original_sha256) if sha)
        return {self.name: packed} | ({self.plain_name: (self.plain_sha256,)} if self.plain_sha256 else {})

    @property
    def download(self) -> tuple[str, str]:
        """The name under which a download is kept, and its checksum."""
        if self.plain_sha256:
            return self.plain_name, self.plain_sha256
        return self.name, self.original_sha256 or self.sha256


@dataclass(frozen=True)
class DataSet:
    """A public data set: its schema is a constant, and `read` makes the raw tables from the files."""

    name: str
    title: str
    schema: Schema
    files: tuple[PublicFile, ...]
    read: Callable[[Mapping[str, Path]], Frames]
    home: str
    licence: str
    note: str

    def frames(self) -> Frames:
        """The raw tables: the schema's columns, in original units, labels as text."""
        return self.read({file.name: self.find(file) for file in self.files})

    def find(self, file: PublicFile) -> Path:
        """The path of a file whose checksum is right."""
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder:
            for name, checksums in file.forms.items():
                path = Path(folder) / self.name / name
                if path.is_file():
                    return self._checked(path, checksums)
            raise DataError(f"{Path(folder) / self.name / file.name} is missing; {self._way_out(file)}")
        if file.url is None:
            raise DataError(f"{self.name}/{file.name} has no public address of its own; {self._way_out(file)}")
        name, checksum = file.download
        folder_of_set = Path(pooch.os_cache("tacit")) / self.name
        try:
            found = pooch.retrieve(file.url, known_hash=f"sha256:{checksum}", path=folder_of_set, fname=name)
        except (OSError, ValueError) as error:  # no network; or another checksum
            reason = "its checksum is not the known one" if isinstance(error, ValueError) else type(error).__name__
            raise DataError(f"{file.url} could not be had ({reason}); {self._way_out(file)}") from None
        return Path(found)

    def _checked(self, path: Path, checksums: tuple[str, ...]) -> Path:
        status = path.stat()
        found = _sha256(path, status.st_size, status.st_mtime_ns)
        if found not in checksums:
            raise DataError(f"{path} has the SHA-256 {found}, not {' or '.join(checksums)}; replace it by the original")
        return path

    def _way_out(self, file: PublicFile) -> str:
        forms = " or ".join(f"{self.name}/{n} (SHA-256 {' or '.join(shas)})" for n, shas in file.forms.items())
        return f"set {FOLDER_VARIABLE} to a folder that holds {forms}; the original is published at {self.home}"


def read_table(path: Path, **settings: Any) -> pd.DataFrame:
    """Read a text table; how it is compressed is told by its name."""
    frame: pd.DataFrame = pd.read_csv(path, **settings)
    return frame


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    """The checksum of a file as it was when it had this size and time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
