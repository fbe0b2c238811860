"""Run a method many times on its worst neighbours, and see how well all that it opens tells them apart.

The attacker sees everything that becomes known in a run: every opened sum and every value that a party let go, not only
the model. It also sees that a run failed, and with which words: a refusal or an error is an outcome like any other.

Half the runs choose what to look at, the other half tests it (`privacy.audit`). An audit that would not notice half the
noise is worth nothing. So each comes with its power: the same runs with half the noise, which must be flagged.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import RunError, SettingError
from tacit.federation.channel import Opened
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods.method import Method
from tacit.methods.neighbour import Neighbours
from tacit.privacy.audit import AuditFinding, audit_outcomes
from tacit.unit import Unit

Floats = npt.NDArray[np.float64]
Outcome = list[float]
"""What is seen of a run: 0 and then all that was opened, or the number of a failure."""

CHUNK = 250  # runs that one task makes


@dataclass(frozen=True, kw_only=True)
class Audited:
    """One pair of neighbours: what was claimed and what was found."""

    neighbours: str
    noise: float  # times the claimed noise
    claimed: float
    delta: float
    finding: AuditFinding

    @property
    def is_flagged(self) -> bool:
        """Whether the claim is refuted."""
        return self.finding.epsilon > self.claimed


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """An audit of one method: as it is, and with half its noise."""

    method: str
    settings: Mapping[str, Any]
    as_it_is: tuple[Audited, ...]
    half_the_noise: tuple[Audited, ...]

    @property
    def passes(self) -> bool:
        """Whether no pair refutes the claim."""
        return not any(audited.is_flagged for audited in self.as_it_is)

    @property
    def has_power(self) -> bool:
        """Whether half the noise would have been noticed."""
        return any(audited.is_flagged for audited in self.half_the_noise)

    @property
    def epsilon(self) -> float:
        """The largest lower bound found for the method as it is."""
        return max(audited.finding.epsilon for audited in self.as_it_is)

    @property
    def epsilon_at_half(self) -> float:
        """The largest lower bound found with half the noise; not a number if that was not run."""
        return max((audited.finding.epsilon for audited in self.half_the_noise), default=math.nan)


def audit(
    method: Method,
    *,
    runs: int = 2000,
    confidence: float = 0.999,
    power: bool = True,
    processes: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    replaced: Unit | None = None,
) -> AuditResult:
    """Audit `method` at the epsilon it states, on each pair of its worst neighbours; `runs` of each neighbour.

    `replaced` says in what neighbours differ; None takes what the method protects. A method that protects records must
    be flagged on neighbours that differ in a person.
    With several pairs, each is tested at a higher confidence, so that `confidence` holds for the whole. `processes` is
    how many are used, all cores by default; 0 runs in this one.

    Example:
        >>> import tacit
        >>> result = tacit.audit(tacit.FunctionalMechanism(epsilon=1.0, delta=0.1), runs=40, power=False, processes=1)
        >>> result.passes  # with so few runs it says little; 2,000 are usual
        True
    """
    if not math.isfinite(getattr(method, "epsilon", math.inf)):
        raise SettingError(f"{method.name} states no epsilon that could be audited; give a finite one")
    pairs = neighbours_of(method, replaced)
    if not pairs:
        raise SettingError(f"{method.name} names no neighbours to be audited on")
    noises = (1.0, 0.5) if power else (1.0,)
    cases = [(pair, noise) for noise in noises for pair in range(len(pairs)) if pairs[pair].loss is None]
    outcomes = _collect((method, replaced), cases, runs, processes, on_progress)
    each = 1 - (1 - confidence) / max(1, len({pair for pair, _ in cases}))
    audited: dict[float, list[Audited]] = {noise: [] for noise in noises}
    for (pair, noise), seen in zip(cases, outcomes, strict=True):
        delta = _prepared(method, pairs[pair], 1.0).promise.settled_delta
        finding = _found(method, pairs[pair], seen, delta, each)
        audited[noise].append(_audited(method, pairs[pair], noise, delta, finding))
    for exact in (pair for pair in pairs if pair.loss is not None):
        for noise in noises:
            finding = AuditFinding(epsilon=_known_loss(method, exact, noise), confidence=1.0, n_runs=0)
            audited[noise].append(_audited(method, exact, noise, 0.0, finding))
    return AuditResult(
        method=method.name,
        settings=method.get_params(),
        as_it_is=tuple(audited[1.0]),
        half_the_noise=tuple(audited.get(0.5, ())),
    )


def _found(
    method: Method, pair: Neighbours, seen: tuple[Floats, Floats], delta: float, confidence: float
) -> AuditFinding:
    first, second = seen
    if first[:, 0].all() and second[:, 0].all() and set(first[:, 0]) == set(second[:, 0]):
        raise RunError(
            f"every run of {method.name} on {pair.label!r} fails, and alike, so that nothing is audited; fit it once "
            f"to see why"
        )
    return audit_outcomes(first, second, delta=delta, confidence=confidence)


def _known_loss(method: Method, pair: Neighbours, noise: float) -> float:
    assert pair.loss is not None
    return pair.loss(_prepared(method, pair, noise))


def _audited(method: Method, pair: Neighbours, noise: float, delta: float, finding: AuditFinding) -> Audited:
    claimed = pair.claimed or _prepared(method, pair, 1.0).get_params()["epsilon"]
    return Audited(neighbours=pair.label, noise=noise, claimed=claimed, delta=delta, finding=finding)


def neighbours_of(method: Method, replaced: Unit | None = None) -> list[Neighbours]:
    """The pairs on which the method is audited, as its calibration asks."""
    kind, unit = type(method), replaced or method.weighted_unit
    if unit != "record":
        if "unit" not in kind._get_param_names():
            raise SettingError(f"{method.name} names no neighbours that differ in a {unit}; audit it on its own")
        return kind.person_neighbours()
    return kind.printed_neighbours() if getattr(method, "calibration", None) == "paper" else kind.worst_neighbours()


def _prepared(method: Method, pair: Neighbours, noise: float) -> Method:
    settings = method.get_params() | dict(pair.settings)
    prepared = type(method)(**settings)
    return prepared if noise == 1.0 else prepared.at_noise(noise)


def _collect(
    audited: tuple[Method, Unit | None],
    cases: list[tuple[int, float]],
    runs: int,
    processes: int | None,
    on_progress: Callable[[int, int], None] | None,
) -> list[tuple[Floats, Floats]]:
    """The outcomes of all cases, made in chunks over several processes."""
    method, replaced = audited
    sizes = [min(CHUNK, runs - start) for start in range(0, runs, CHUNK)]
    tasks = [(case, side, size) for case in range(len(cases)) for side in (0, 1) for size in sizes]
    found: dict[tuple[int, int], list[Outcome]] = {(case, side): [] for case in range(len(cases)) for side in (0, 1)}
    done = 0

    def keep(case: int, side: int, outcomes: list[Outcome]) -> None:
        nonlocal done
        found[case, side] += outcomes
        done += len(outcomes)
        if on_progress is not None:
            on_progress(done, 2 * runs * len(cases))

    arguments = [
        ((type(method), method.get_params(), replaced), *cases[case], side, size) for case, side, size in tasks
    ]
    if processes == 0:
        for (case, side, _), task in zip(tasks, arguments, strict=True):
            keep(case, side, _outcomes(*task))
    else:
        with _pool(processes) as pool:
            with _not_interrupted():  # Ctrl-C is ours to hear; what we start is ended by us
                waiting = {pool.submit(_outcomes, *task): tasks[i] for i, task in enumerate(arguments)}
            for future in as_completed(waiting):
                keep(*waiting[future][:2], future.result())
    return [_alike(found[case, 0], found[case, 1]) for case in range(len(cases))]


@contextmanager
def _pool(processes: int | None) -> Iterator[ProcessPoolExecutor]:
    """Processes that are ended at once if this block is left by an error, Ctrl-C included, whatever is queued."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context)
    try:
        yield pool
    except BaseException:
        workers = list(pool._processes.values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join()
        raise
    pool.shutdown()


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Hold Ctrl-C back in here, and for good in processes that are started in here: they inherit the mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _alike(first: list[Outcome], second: list[Outcome]) -> tuple[Floats, Floats]:
    """Outcomes of one length: what a failed run did not open counts as 0."""
    width = max(map(len, first + second))
    padded = [np.array([row + [0.0] * (width - len(row)) for row in side]) for side in (first, second)]
    return padded[0], padded[1]


def _outcomes(
    audited: tuple[type[Method], dict[str, Any], Unit | None], pair: int, noise: float, side: int, runs: int
) -> list[Outcome]:
    """What an attacker sees of `runs` runs on one side of a pair."""
    kind, settings, replaced = audited
    neighbours = neighbours_of(kind(**settings), replaced)[pair]
    method = _prepared(kind(**settings), neighbours, noise)
    tables = neighbours.first if side == 0 else neighbours.second
    parties = Federation.from_tables(tables, policy=Policy(not_private=[kind.name]))
    rows = []
    for _ in range(runs):
        seen: list[Opened] = []
        parties.witness = seen
        try:
            method.fit(parties)
            rows.append([0.0, *([neighbours.score(method, seen)] if neighbours.score else numbers(seen))])
        except Exception as failure:  # whatever it is, the attacker sees it
            rows.append([_number(failure)])
    return rows


def _number(failure: Exception) -> float:
    """A number from 1 to 1000 for a failure; the same for the same words."""
    return 1.0 + zlib.crc32(f"{type(failure).__name__}: {failure}".encode()) % 1000


def numbers(opened: list[Opened]) -> list[float]:
    """Everything that was opened, as one list of numbers."""
    flat: list[float] = []
    for item in opened:
        values = [item] if isinstance(item, np.ndarray) else [item[key] for key in sorted(item)]
        for value in values:
            if isinstance(value, np.ndarray):
                flat += [float(x) for x in value.ravel()]
            elif isinstance(value, int | float):
                flat.append(float(value))
    return flat
