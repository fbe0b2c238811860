"""Public data sets for examples, tests and the reproduction of papers.

    tacit.datasets.load("heart_disease").tables["cleveland"]

Bounds and categories in their schemas are constants from documentation and domain knowledge; nothing is learned from
the data when it is loaded. Columns that give the label away, or that are known only after it, are left out.

Example:
    >>> import tacit
    >>> data = tacit.datasets.load("readmission")
    >>> list(data.tables)
    ['north', 'south', 'west', 'east', 'public']
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.datasets.census import DATA_SETS as CENSUS
from tacit.datasets.dataset import DataSet, Frames
from tacit.datasets.finance import DATA_SETS as FINANCE
from tacit.datasets.health import DATA_SETS as HEALTH
from tacit.datasets.made_up import DATA_SETS as MADE_UP
from tacit.datasets.network import DATA_SETS as NETWORK
from tacit.datasets.news import DATA_SETS as NEWS
from tacit.datasets.sensor import DATA_SETS as SENSOR
from tacit.datasets.text import DATA_SETS as TEXT
from tacit.datasets.wine import DATA_SETS as WINE
from tacit.errors import DataError
from tacit.storage import write_whole

__all__ = ["PublicData", "describe", "export", "files", "load", "names"]

_ALL = (*CENSUS, *FINANCE, *HEALTH, *MADE_UP, *NETWORK, *NEWS, *SENSOR, *TEXT, *WINE)
_DATA_SETS: dict[str, DataSet] = {data_set.name: data_set for data_set in _ALL}


@dataclass(frozen=True)
class PublicData:
    """A public data set; its files are read when `frames` or `tables` is first asked for."""

    name: str
    schema: Schema
    note: str
    licence: str

    @cached_property
    def frames(self) -> Frames:
        """The raw tables: the schema's columns, in original units, labels as text."""
        return _DATA_SETS[self.name].frames()

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables, encoded by the schema."""
        return {name: Table.from_frame(frame, self.schema, name=name) for name, frame in self.frames.items()}


def names() -> list[str]:
    """The names of all data sets."""
    return sorted(_DATA_SETS)


def load(name: str) -> PublicData:
    """A data set by its name."""
    data_set = _find(name)
    return PublicData(data_set.name, data_set.schema, data_set.note, data_set.licence)


def describe(name: str) -> str:
    """What a data set is, what was left out, where it comes from and under which terms; reads no file."""
    data_set = _find(name)
    schema = data_set.schema
    return (
        f"{data_set.name}: {data_set.title}\n"
        f"{len(schema.features)} features, {schema.n_columns} encoded columns; "
        f"target {schema.target.name!r} with {schema.n_classes} classes\n"
        f"{data_set.note}\n"
        f"Terms: {data_set.licence}. Home: {data_set.home}"
    )


def files(name: str) -> dict[str, Path]:
    """The files of a data set by name, checked: for columns that its schema leaves out."""
    data_set = _find(name)
    return {file.name: data_set.find(file) for file in data_set.files}


def export(name: str, folder: str | Path) -> list[Path]:
    """Write one CSV file with a line of column names for each table, in original units, and tell their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {folder / f"{table}.csv": frame.to_csv(index=False) for table, frame in load(name).frames.items()}
    for path, text in texts.items():
        if path.exists() and path.read_bytes() != text.encode():
            raise DataError(f"{path} exists, holds something else and is not written over; name another folder")
    for path, text in texts.items():
        write_whole(path, text)
    return list(texts)


def _find(name: str) -> DataSet:
    if name not in _DATA_SETS:
        close = difflib.get_close_matches(name, _DATA_SETS, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise DataError(f"there is no public data set {name!r}{hint}; there are {names()}")
    return _DATA_SETS[name]
