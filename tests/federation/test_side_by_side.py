"""Parties of one process with large tables run side by side, and reply what each replies alone."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation import step as step_module
from tacit.federation.reply import Noised
from tacit.federation.step import Step
from tacit.privacy.event import Pure
from tacit.rand import Rng

SCHEMA = Schema.of_arrays(2, ["0", "1"])


@dataclass(frozen=True)
class Plan:
    meeting: threading.Barrier | None = None


def total(table: Table, plan: Plan, *, rng: Rng) -> Noised:
    if plan.meeting is not None:
        plan.meeting.wait(timeout=120)
    noise = rng.below(1000, 1)[0]
    return Noised({"sum": float(sum(X.sum() for X, _ in table.blocks())), "noise": int(noise)}, Pure(epsilon=1.0))


def replies(monkeypatch: pytest.MonkeyPatch, plan: Plan, *, n_cores: int, n_records: int) -> list[Any]:
    monkeypatch.setattr(step_module, "os", SimpleNamespace(cpu_count=lambda: n_cores))
    draws = np.random.default_rng(0)
    tables = [
        Table.from_arrays(draws.normal(size=(n_records, 2)), draws.integers(0, 2, n_records), SCHEMA) for _ in range(2)
    ]
    rngs = [Rng.seeded(seed) for seed in (1, 2)]
    asked = Step("test/total", 1, total, plan=Plan, values=None)
    return [reply.value for reply in asked.run_many(tables, plan, None, rngs=rngs, seats=[None, None])]


def test_large_tables_meet_and_reply_what_they_reply_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    met = replies(monkeypatch, Plan(threading.Barrier(2)), n_cores=2, n_records=20_000)
    assert met == replies(monkeypatch, Plan(), n_cores=1, n_records=20_000)


def test_small_tables_start_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_module, "ThreadPoolExecutor", None)
    assert len(replies(monkeypatch, Plan(), n_cores=2, n_records=100)) == 2


def test_what_fails_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(2)
    meeting.abort()
    with pytest.raises(threading.BrokenBarrierError, match=r"^$"):
        replies(monkeypatch, Plan(meeting), n_cores=2, n_records=20_000)
