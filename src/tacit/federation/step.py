"""Steps: what a party can be asked. A step never travels; its name and version do.

    @step("averaging/model", version=2, plan=Plan)
    def local_model(table, plan, *, rng) -> Sealed: ...

    @step("noisy-descent/gradient", version=2, plan=Plan, values=Iterate)
    def party_gradient(table, plan, iterate, *, rng) -> Sealed: ...

    @local_model.batched
    def local_models(tables, plan, *, rngs) -> list[Sealed]: ...

`plan` is what the party works out itself (`agreement`). `values` is a frozen dataclass with what only the coordinator
can know, such as a model to look at. A field of the values that is `pinned` has one value in a run: what a party is
told first holds for every later question of the run that has a field of that name. A step that is `seated` also gets
the party's seat (`guard.Seat`), by which it checks what others signed. Nothing else reaches a step.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from tacit.data.table import Table
from tacit.errors import WireError
from tacit.federation.reply import Reply
from tacit.rand import Rng
from tacit.record import from_value, to_value
from tacit.wire import Value

Single = Callable[..., Reply]
Many = Callable[..., Sequence[Reply]]
M = TypeVar("M", bound=Many)

_LARGE = 20_000  # records of a table: a pass over fewer is sooner over than a thread has begun


class Step:
    """A function that runs at a party, with an optional form that serves many parties at once."""

    def __init__(
        self,
        name: str,
        version: int,
        single: Single,
        *,
        plan: type,
        values: type | None,
        pinned: tuple[str, ...] = (),
        seated: bool = False,
        content: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.plan = plan
        self.values = values
        self.pinned = pinned
        self.seated = seated
        self.content = content or {}
        self._single = single
        self._many: Many | None = None
        self.__doc__ = single.__doc__

    def __call__(self, table: Table, plan: Any, values: Any = None, *, rng: Rng, seat: Any = None) -> Reply:
        """Run at one party, in its seat of the run if the step looks at that."""
        own = {"seat": seat} if self.seated else {}
        return self._single(table, *self._given(plan, values), rng=rng, **own)

    def batched(self, many: M) -> M:
        """Register the form that serves many parties at once; it must give what the single form gives."""
        self._many = many
        return many

    def run_many(
        self, tables: Sequence[Table], plan: Any, values: Any, *, rngs: Sequence[Rng], seats: Sequence[Any]
    ) -> Sequence[Reply]:
        """Run at several parties that live in one process: together in a batched form, or large tables side by side.

        Guarantees:
            Each party's reply is the one that it gives alone: parties share neither table nor source of chance.
        """
        if self._many is not None and len(tables) > 1:
            return self._many(tables, *self._given(plan, values), rngs=rngs)

        def run(own: tuple[Table, Rng, Any]) -> Reply:
            table, rng, seat = own
            return self(table, plan, values, rng=rng, seat=seat)

        parties = list(zip(tables, rngs, seats, strict=True))
        # Threads, since what takes long are sums over blocks, during which numpy lets others go on.
        n_threads = min(sum(table.n_records >= _LARGE for table in tables), os.cpu_count() or 1)
        if n_threads < 2:
            return list(map(run, parties))
        # One thread of linear algebra each: more of them than cores would wait for each other.
        one_each = _linear_algebra().limit(limits=1, user_api="blas")
        with one_each, ThreadPoolExecutor(n_threads, thread_name_prefix="tacit-party") as threads:
            return list(threads.map(run, parties))

    def encode_values(self, values: Any) -> Value:
        """The coordinator's values as they travel."""
        self._check(values)
        return None if values is None else to_value(values)

    def decode_values(self, value: Value) -> Any:
        """The coordinator's values; a `WireError` for an unknown field, a missing one or one of another type."""
        if self.values is None:
            if value is not None:
                raise WireError(f"step {self.name!r} takes no values, and the question has some")
            return None
        return from_value(self.values, value)

    def _given(self, plan: Any, values: Any) -> tuple[Any, ...]:
        self._check(values)
        if not isinstance(plan, self.plan):
            raise TypeError(f"step {self.name!r} needs a {self.plan.__qualname__}, not a {type(plan).__qualname__}")
        return (plan,) if self.values is None else (plan, values)

    def _check(self, values: Any) -> None:
        wanted = type(None) if self.values is None else self.values
        if not isinstance(values, wanted):
            raise TypeError(f"step {self.name!r} takes {wanted.__qualname__}, not {type(values).__qualname__}")

    def __repr__(self) -> str:
        return f"Step({self.name!r}, version={self.version})"


@cache
def _linear_algebra() -> ThreadpoolController:
    """The libraries that numpy computes with: looked for once."""
    return ThreadpoolController()


def step(
    name: str,
    *,
    version: int,
    plan: type,
    values: type | None = None,
    pinned: tuple[str, ...] = (),
    seated: bool = False,
    content: Mapping[str, str] | None = None,
) -> Callable[[Single], Step]:
    """Make a function the step `name` in `version`, with the classes of its plan and values, and what is pinned.

    `content` says which field of the values must be the content that the study states, and under which name.
    """

    def register(single: Single) -> Step:
        return Step(name, version, single, plan=plan, values=values, pinned=pinned, seated=seated, content=content)

    return register
