"""Steps: what a party can be asked. A step never travels; its name and version do.

@step("averaging/model", version=1)
def local_model(table, *, rng, **public_arguments) -> Noised | Sealed | Public | Disclosed: ...

@local_model.batched
def local_models(tables, *, rngs, **public_arguments) -> list of replies, one for each table
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tacit.data.table import Table
from tacit.errors import WireError
from tacit.federation.reply import Reply
from tacit.rand import Rng

Single = Callable[..., Reply]
Many = Callable[..., Sequence[Reply]]


class Step:
    """A registered function that runs at a party, with an optional form that serves many parties at once."""

    def __init__(self, name: str, version: int, single: Single) -> None:
        self.name = name
        self.version = version
        self._single = single
        self._many: Many | None = None
        self.__doc__ = single.__doc__

    def __call__(self, table: Table, *, rng: Rng, **public_arguments: Any) -> Reply:
        """Run at one party."""
        return self._single(table, rng=rng, **public_arguments)

    def batched(self, many: Many) -> Many:
        """Register the form that serves many parties at once; it must give what the single form gives."""
        self._many = many
        return many

    def run_many(self, tables: Sequence[Table], *, rngs: Sequence[Rng], **public_arguments: Any) -> Sequence[Reply]:
        """Run at several parties that live in one process, together where the step has a batched form."""
        if self._many is None or len(tables) < 2:
            return [self(table, rng=rng, **public_arguments) for table, rng in zip(tables, rngs, strict=True)]
        return self._many(tables, rngs=rngs, **public_arguments)

    def __repr__(self) -> str:
        return f"Step({self.name!r}, version={self.version})"


_STEPS: dict[tuple[str, int], Step] = {}


def step(name: str, *, version: int) -> Callable[[Single], Step]:
    """Register a function as the step `name` in `version`."""

    def register(single: Single) -> Step:
        if (name, version) in _STEPS:
            raise ValueError(f"step {name!r} version {version} is registered twice")
        _STEPS[name, version] = registered = Step(name, version, single)
        return registered

    return register


def find_step(name: str, version: int) -> Step:
    """The step of that name and version; a `WireError` if this installation has none."""
    try:
        return _STEPS[name, version]
    except KeyError:
        known = sorted(v for n, v in _STEPS if n == name)
        hint = f"this installation has version {known[-1]}" if known else "this installation does not know it"
        raise WireError(f"step {name!r} version {version} cannot run here: {hint}; use the same release") from None
