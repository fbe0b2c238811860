"""Compute a reproduction cell by cell; what is finished is kept, so that an interrupted run goes on.

Each cell has a file of its own in the cache, named by a digest of the result's name and version, the cell's key and
its settings. It appears whole or not at all. Seeds follow from name and key, and are written down. So are seconds of
the processor, its own and those of processes that a cell has started: other work on the machine hardly changes them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import DataError
from tacit.reproduce.result import Finding, Reproduction, ResultCell, Values, Verdict, together
from tacit.storage import write_whole

DIGITS = 6  # that are kept of a number


@dataclass(frozen=True)
class FinishedResult:
    """A result with all of its cells, each with settings, seed, seconds of the processor and value."""

    reproduction: Reproduction
    quick: bool
    cells: Mapping[str, Mapping[str, Any]]

    @property
    def values(self) -> Values:
        """What the cells gave."""
        return {key: cell["value"] for key, cell in self.cells.items()}

    @property
    def findings(self) -> list[Finding]:
        """What is found of each claim."""
        return [claim.check(self.values) for claim in self.reproduction.claims]

    @property
    def verdict(self) -> Verdict:
        """What is found of the result as a whole."""
        return together(self.findings)

    @property
    def seconds(self) -> float:
        """What the cells took of the processor, also those that another result shares."""
        return sum(float(cell["seconds"]) for cell in self.cells.values())

    def as_json(self) -> dict[str, Any]:
        """All that is kept of it, and what it shows."""
        claims = zip(self.reproduction.claims, self.findings, strict=True)
        return {
            "name": self.reproduction.name,
            "version": self.reproduction.version,
            "quick": self.quick,
            "verdict": self.verdict,
            "claims": [{"says": claim.says, "verdict": found.verdict, "why": found.why} for claim, found in claims],
            "cells": dict(self.cells),
        }


def finished_from(found: Mapping[str, Any], reproduction: Reproduction) -> FinishedResult:
    """The inverse of `as_json`; verdicts are made anew from the numbers."""
    return FinishedResult(reproduction, bool(found["quick"]), found["cells"])


def run(
    reproduction: Reproduction,
    *,
    quick: bool = False,
    cache: Path,
    on_cell: Callable[[int, int, str], None] | None = None,
) -> FinishedResult:
    """All cells, from the cache where they are there; `on_cell` hears of each before it is computed."""
    cells = reproduction.cells(quick)
    done = {}
    for k, cell in enumerate(cells):
        if on_cell is not None:
            on_cell(k, len(cells), cell.key)
        done[cell.key] = _kept(reproduction, cell, cache)
    return FinishedResult(reproduction, quick, done)


def _kept(reproduction: Reproduction, cell: ResultCell, cache: Path) -> dict[str, Any]:
    name = cell.shared_with or reproduction.name
    about = {
        "name": name,
        "version": reproduction.version,
        "key": cell.key,
        "settings": dict(cell.settings),
    }
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    path = cache / name / f"{cell.key}-{digest}.json"
    if path.is_file():
        return _told(path)
    seed = seed_of(name, cell.key)
    begun = _processor_seconds()
    value = _short(cell.compute(seed=seed, **cell.settings))
    seconds = round(_processor_seconds() - begun, 3)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**about, "seed": seed, "seconds": seconds, "value": value}, allow_nan=False)
    write_whole(path, text)
    return _told(path)  # as a later run will read it


def _told(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {part: found[part] for part in ("settings", "seed", "seconds", "value")}
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path} is not what a run has written; delete it, and it is computed anew") from None


def _processor_seconds() -> float:
    """Of this process, and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def seed_of(name: str, key: str) -> int:
    """The seed of a cell: the same in every run."""
    return int.from_bytes(hashlib.sha256(f"{name}/{key}".encode()).digest()[:4], "big")


def _short(value: Any) -> Any:
    """The same with numbers to so many digits, and numpy's kinds as plain ones."""
    if isinstance(value, Mapping):
        return {str(key): _short(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return float(f"{value:.{DIGITS}g}")
    return value
