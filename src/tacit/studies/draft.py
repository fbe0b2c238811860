"""Draft a study file from a public sample: everything but the bounds, which a human must give.

The sample must be PUBLIC: its column names and its labels are copied into the draft. Bounds are not: the least and
largest value of a sample are facts about its records, and a bound must hold for everybody's.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from tacit.data.label import MISSING_TEXT, normal
from tacit.errors import StudyError
from tacit.studies.strict import nearest
from tacit.studies.toml import toml_text, toml_value

MOST_LABELS = 50
FEW_NUMBERS = 10

_HEAD = """\
# A draft, made from a public sample. Before it can be used:
#   1. Say what the study wants to know, under purpose.
#   2. Give every numeric feature its bounds: take away the # before low and high and write numbers there. They come
#      from the field (an age lies in 0..120), never from anybody's data. Values outside are clipped to them.
#   3. Look at the kinds, the labels and the method.
"""
_WHOLE = "# Made from a public sample. Look at the kinds, the labels and the method before you use it.\n"


@dataclass(frozen=True)
class Column:
    """What a sample tells of one column: its labels in order, and whether they are numbers."""

    name: str
    labels: tuple[str, ...]
    numeric: bool
    missing: bool

    @property
    def is_binary(self) -> bool:
        """Whether there are two values, and they are 0 and 1 or are texts."""
        return len(self.labels) == 2 and (not self.numeric or set(self.labels) == {"0", "1"})


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a human knows of the study already; what is left out is left open in the draft.

    Attributes:
        name: what people call the study; the sample's file name otherwise.
        purpose: what it wants to know.
        bounds: the least and the largest value of a numeric feature, by its name; from the field, never from data.
    """

    name: str | None = None
    purpose: str | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def draft(path_of_public_csv: str | os.PathLike[str], *, target: str | None = None, known: Known | None = None) -> str:
    """The text of a study file for data like this PUBLIC sample; the target is the last column unless one is named.

    Guarantees:
        Of the numbers in the sample nothing is written but those that are labels (0 and 1, or the target's classes). If
        a feature is numeric, the draft is not a valid study until a human gives its bounds.
    """
    known = known or Known()
    columns = _columns(path_of_public_csv)
    chosen = _target(columns, target, os.fspath(path_of_public_csv))
    features = [column for column in columns if column is not chosen]
    left_out = [column for column in features if _reason_to_leave_out(column)]
    kept = [column for column in features if column not in left_out]
    _check_bounds(known.bounds, kept, os.fspath(path_of_public_csv))
    name = Path(path_of_public_csv).stem if known.name is None else known.name
    is_whole = known.purpose is not None and all(c.is_binary or not c.numeric or c.name in known.bounds for c in kept)
    parts = [_WHOLE if is_whole else _HEAD, _study_part(name, known.purpose, left_out), _target_part(chosen)]
    parts += [_feature_part(column, known.bounds.get(column.name)) for column in kept]
    if not kept:
        parts.append("# No column of the sample looks like a feature: add a [[feature]] table for each that is one.\n")
    parts.append(_method_part())
    return "\n".join(parts)


def _columns(path: str | os.PathLike[str]) -> list[Column]:
    source = os.fspath(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                path, dtype=str, keep_default_na=False, header=None, index_col=False, encoding="utf-8-sig"
            )
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StudyError(f"{source}: cannot be read ({reason}); give the path of a public CSV file") from error
    except (pd.errors.EmptyDataError, pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError):
        raise StudyError(f"{source}: is not a CSV file in UTF-8 with a header line and equally long lines") from None
    header = [str(name).strip() for name in table.iloc[0]]
    doubles = sorted({name for name in header if header.count(name) > 1})
    if doubles or not all(header):
        what = f"has {', '.join(map(repr, doubles))} more than once" if doubles else "has a column without a name"
        raise StudyError(f"{source}: the header line {what}; give each column its own name")
    if len(table) < 2 or len(header) < 2:
        raise StudyError(
            f"{source}: has {len(table) - 1} records and {len(header)} columns; a draft needs 1 and 2 or more"
        )
    return [_column(name, table.iloc[1:, k]) for k, name in enumerate(header)]


def _column(name: str, values: pd.Series) -> Column:
    texts = values.str.strip()
    present = texts[~texts.isin(MISSING_TEXT)]
    labels = sorted({normal(text) for text in present.unique()})
    numeric = len(labels) > 0 and all(_is_number(label) for label in labels)
    if numeric:
        labels.sort(key=float)
    return Column(name=name, labels=tuple(labels), numeric=numeric, missing=len(present) < len(texts))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def _target(columns: list[Column], target: str | None, source: str) -> Column:
    if target is None:
        return columns[-1]
    for column in columns:
        if column.name == target:
            return column
    names = [column.name for column in columns]
    close = nearest(target, names)
    hint = f"did you mean {close[0]!r}?" if close else f"the columns are {', '.join(names)}"
    raise StudyError(f"{source}: target {target!r} is no column; {hint}")


def _reason_to_leave_out(column: Column) -> str:
    if not column.labels:
        return "empty in the sample"
    if len(column.labels) == 1 and not column.numeric:
        return "always the same in the sample"
    if not column.numeric and len(column.labels) > MOST_LABELS:
        return f"more than {MOST_LABELS} different texts: a name, an identifier or free text"
    return ""


def _check_bounds(bounds: Mapping[str, tuple[float, float]], kept: list[Column], source: str) -> None:
    numeric = [column.name for column in kept if column.numeric and not column.is_binary]
    for name, (low, high) in bounds.items():
        if name not in numeric:
            close = nearest(name, numeric)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"the numeric features are {', '.join(numeric) or 'none'}"
            )
            raise StudyError(f"{source}: {name!r} has bounds and is no numeric feature; {hint}")
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise StudyError(
                f"bounds of {name!r} are {low:g} and {high:g}; give two finite numbers, the lower one first"
            )


def _study_part(name: str, purpose: str | None, left_out: list[Column]) -> str:
    told = '# purpose = "?"  # what the study wants to know' if purpose is None else f"purpose = {toml_text(purpose)}"
    lines = ["[study]", f"name = {toml_text(name)}", told]
    lines += [f"# left out: {toml_text(column.name)} ({_reason_to_leave_out(column)})" for column in left_out]
    if left_out:
        lines.append(f"ignore = {toml_value([column.name for column in left_out])}")
    lines.append(
        "# norm_bound = 1.0  # optional: rows longer than this are scaled down; left out, bounds and categories say it"
    )
    return "\n".join(lines) + "\n"


def _target_part(column: Column) -> str:
    lines = ["[target]", f"name = {toml_text(column.name)}"]
    if 2 <= len(column.labels) <= MOST_LABELS:
        lines.append(f"classes = {toml_value(column.labels)}  # of two, the last one is the positive class")
    else:
        lines.append(f"# the sample has {len(column.labels)} different values here: is this the target?")
        lines.append('# classes = ["?", "?"]  # of two, the last one is the positive class')
    return "\n".join(lines) + "\n"


def _feature_part(column: Column, bounds: tuple[float, float] | None) -> str:
    lines = ["[[feature]]", f"name = {toml_text(column.name)}"]
    if column.is_binary:
        lines.append('kind = "binary"')
        lines.append(f"values = {toml_value(column.labels)}  # the second one counts as 1")
    elif column.numeric:
        lines.append('kind = "numeric"')
        if len(column.labels) <= FEW_NUMBERS:
            lines.append(f'# only {len(column.labels)} different numbers: if they are codes, make it "categorical"')
        if bounds is None:
            lines.append("# low = ?   # from the domain, not from data")
            lines.append("# high = ?  # from the domain, not from data")
        else:
            lines += [f"low = {bounds[0]:g}", f"high = {bounds[1]:g}"]
    else:
        lines.append('kind = "categorical"')
        lines.append(f"categories = {toml_value(column.labels)}  # all that can occur; the first is the reference")
    if column.missing:
        lines.append('missing = "indicator"  # the sample has gaps: error | indicator | middle | drop')
    return "\n".join(lines) + "\n"


def _method_part() -> str:
    return """\
[method]  # without this table, the default method for what [privacy] asks
name = "private-newton"  # `tacit methods` lists them
# settings of the method, by their Python names

[privacy]  # without this table, no differential privacy is asked for
epsilon = 1.0
# delta = 1e-6  # left out: 1e-6, or one over the square of the number of records if that is less
unit = "record"  # record | person | party
relation = "replace-one"  # replace-one | add-remove

[federation]
# quorum = 3  # how many parties must answer
deadline_seconds = 60
# colluders = 1  # how many parties may pool what they see
# dropouts = 1  # how many of the parties that began a round goes on without, where the method can
# parties = ["?", "?"]
"""
