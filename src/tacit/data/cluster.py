"""A table on a party's own Dask cluster: blocks are summed where they lie, and only sums come back.

The cluster is the party's own machine, made of several. Dask moves functions between its scheduler, its workers and its
clients with pickle. So whoever can speak to the scheduler can run any code where the records are. That is why a
scheduler on another machine must be spoken to over TLS, with certificates of the party's own. Nothing of this reaches
another party or the coordinator: their messages stay in the closed format of `wire`.

What is checked before a table is opened, hence before a run begins and anything is charged:
1. The scheduler answers, and has workers.
2. Each worker has the same versions of what computes sums as this machine. One that joins later checks that itself.
3. Each worker has the memory that a task takes.
4. Each worker sees the same files.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar
from weakref import WeakValueDictionary, finalize

import numpy as np

from tacit.data.block import BLOCK_ROWS, WeightedBlock
from tacit.data.parquet import (
    FileSpan,
    ParquetFile,
    Reading,
    count_clipped,
    find_files,
    list_blocks,
    look_at,
    own_versions,
    sum_spans,
)
from tacit.data.records import Facts
from tacit.data.scheduler import Scheduler
from tacit.data.stream import PART_ROWS, BlockStream
from tacit.errors import DataError, SettingError

T = TypeVar("T")
Item = TypeVar("Item")

ANSWER_SECONDS = 10.0  # within which a scheduler answers
IDLE_SECONDS = 60.0  # for which a sum waits while there is no worker at all
STREAM_VALUES = 2**22  # numbers that travel at a time where a method needs rows, not sums
BASE_BYTES = 768 * 2**20  # what a worker takes: Python with its libraries, and what DuckDB may use


class Cluster:
    """A connection to a party's scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Connect; a `DataError` says why that cannot be done."""
        try:
            import distributed
        except ImportError:
            raise SettingError("a table on a cluster needs Dask: pip install 'tacit[cluster]'") from None
        dask: Any = distributed  # which is not typed
        for name in ("client", "utils"):  # what goes wrong is told in one line, not in Dask's tracebacks as well
            logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
        address = self.address = scheduler.address
        try:
            security = None
            if scheduler.ca is not None:
                security = dask.Security(
                    tls_ca_file=scheduler.ca, tls_client_cert=scheduler.cert, tls_client_key=scheduler.key,
                    require_encryption=True,
                )  # fmt: skip
            self._client = dask.Client(
                address, timeout=ANSWER_SECONDS, security=security, set_as_default=False, direct_to_workers=False
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise DataError(
                f"no Dask scheduler answers at {address} ({type(error).__name__}); start it, or mend the address or "
                f"the certificates in party.toml"
            ) from None
        finalize(self, _close, self._client).atexit = False  # Dask closes what is left at the end

    @property
    def workers(self) -> dict[str, Any]:
        """The workers that there are now, by address."""
        workers: dict[str, Any] = self._client.scheduler_info()["workers"]
        return workers

    def check(self, n_columns: int) -> None:
        """Refuse a cluster that could not sum, or would sum otherwise: steps 1 to 3."""
        try:  # one that has died may be on its way back
            self._client.wait_for_workers(1, timeout=ANSWER_SECONDS)
        except TimeoutError:
            raise DataError(
                f"the Dask scheduler at {self.address} has no workers; start some with `dask worker`"
            ) from None
        for package, own in own_versions():
            for worker, found in self.ask_all(version, package).items():
                if found != own:
                    told = "none" if isinstance(found, Exception) else found
                    raise DataError(
                        f"worker {worker} has {package} {told}, this machine {own}; install the same versions "
                        f"everywhere: pip install 'tacit[cluster]' with one list of constraints"
                    )
        for worker, facts in self.workers.items():
            needed = BASE_BYTES + facts["nthreads"] * 8 * (2 * STREAM_VALUES + 4 * BLOCK_ROWS * n_columns)
            limit = facts["memory_limit"]
            if limit and limit < needed:
                raise DataError(
                    f"worker {worker} may use {limit / 2**30:.1f} GB, and {facts['nthreads']} tasks at a time of "
                    f"{n_columns} columns take up to {needed / 2**30:.1f} GB; give it more, or fewer threads"
                )

    def ask_all(self, function: Callable[..., Any], *given: object) -> dict[str, Any]:
        """What each worker answers, or the exception that it raised; those that die meanwhile are left out."""
        with _told_plainly(self.address):
            answers: dict[str, Any] = self._client.run(function, *given, on_error="return")
        return {worker: answer for worker, answer in answers.items() if not isinstance(answer, OSError)}

    def find(self, patterns: Sequence[str]) -> list[ParquetFile]:
        """The files, if all workers see the same: step 4."""
        answers = self.ask_all(find_files, list(patterns))
        for worker, found in answers.items():
            if isinstance(found, DataError):
                raise DataError(f"worker {worker}: {found}")
            if isinstance(found, Exception):
                raise found
        if not answers:
            raise DataError(f"the Dask scheduler at {self.address} has lost its workers; start some")
        first, files = next(iter(answers.items()))
        for worker, found in answers.items():
            if found != files:
                other = next((a.path for a, b in zip(files, found, strict=False) if a != b), "one file more or less")
                raise DataError(f"workers {first} and {worker} see different files ({other}); let them see the same")
        return list(files)

    def in_order(self, function: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
        """function(item) of each item, computed by the workers, in the order of the items.

        Of a worker that dies Dask gives the tasks to another; nothing of it enters a result twice.
        """
        waiting: deque[Any] = deque()
        try:
            for item in items:
                waiting.append(self._client.submit(function, item, pure=False))
                if len(waiting) > 4 + 2 * sum(facts["nthreads"] for facts in self.workers.values()):
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()

    def _result(self, future: Any) -> Any:
        last_seen = time.monotonic()
        with _told_plainly(self.address):
            while True:
                try:
                    return future.result(timeout=1.0)
                except TimeoutError:
                    if future.status == "error":  # a time-out of the task's own
                        raise
                if self.workers:
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > IDLE_SECONDS:
                    raise DataError(f"the Dask cluster at {self.address} has no workers left; start some")


def _close(client: Any) -> None:
    with suppress(Exception):  # the scheduler may be gone
        client.close(timeout=2)


@contextmanager
def _told_plainly(address: str) -> Iterator[None]:
    """Turn what Dask raises into one line."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        yield
    except KilledWorker:
        raise DataError(
            f"workers of the cluster at {address} died again and again at the same records, most likely for want of "
            f"memory; give them more, or fewer threads"
        ) from None
    except MemoryError:
        raise DataError(f"a worker of the cluster at {address} has no memory left; give it more") from None
    except (CancelledError, CommClosedError, OSError, TimeoutError) as error:
        raise DataError(f"the Dask cluster at {address} was lost ({type(error).__name__}); start it again") from None


@dataclass(frozen=True, eq=False)
class ClusterParts:
    """Spans of Parquet files, which workers read: the same parts whoever reads them."""

    cluster: Cluster
    files: Sequence[ParquetFile]
    reading: Reading
    parts: Sequence[tuple[FileSpan, ...]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", cut(self.files, PART_ROWS))

    def each(self, part_sum: Callable[[BlockStream], T]) -> Iterator[T]:
        """The parts' sums, from the workers."""
        return self.cluster.in_order(partial(sum_spans, reading=self.reading, part_sum=part_sum), self.parts)

    def stream(self, rows: int) -> Iterator[WeightedBlock]:
        """All rows, brought here."""
        at_a_time = max(1024, STREAM_VALUES // (self.reading.schema.n_columns + 2))
        read = partial(list_blocks, reading=self.reading, rows=min(rows, at_a_time))
        for blocks in self.cluster.in_order(read, cut(self.files, at_a_time)):
            yield from blocks

    def facts(self) -> Facts:
        """What one look at all records tells."""
        found = list(self.cluster.in_order(partial(look_at, reading=self.reading), self.files))
        clipped: Counter[str] = Counter()
        for one in found:
            clipped.update(one.clipped)
        return Facts(
            n_records=sum(one.n_records for one in found),
            class_counts=np.sum([one.class_counts for one in found], axis=0),
            clipped=dict(clipped),
            dropped=sum(one.dropped for one in found),
        )

    def count_clipped(self) -> int:
        """How many rows are scaled down to the norm bound."""
        return sum(self.cluster.in_order(partial(count_clipped, reading=self.reading), self.files))


def cut(files: Sequence[ParquetFile], rows: int) -> tuple[tuple[FileSpan, ...], ...]:
    """The files one after another, cut after each so many records: where a file ends does not enter it."""
    parts: list[tuple[FileSpan, ...]] = []
    part: list[FileSpan] = []
    room = rows
    for file in files:
        start = 0
        while start < file.n_records:
            end = min(file.n_records, start + room)
            part.append((file, (start, end)))
            room -= end - start
            start = end
            if room == 0:
                parts.append(tuple(part))
                part, room = [], rows
    return (*parts, tuple(part)) if part else tuple(parts)


_CLUSTERS: WeakValueDictionary[Scheduler, Cluster] = WeakValueDictionary()


def reach(scheduler: Scheduler) -> Cluster:
    """The connection to a scheduler: one for all tables of this process."""
    cluster = _CLUSTERS.get(scheduler)
    if cluster is None:
        cluster = _CLUSTERS[scheduler] = Cluster(scheduler)
    return cluster
