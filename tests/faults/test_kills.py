"""kill -9 of any daemon at random points; `benchmarks/kills.py` does the same 200 times."""

from __future__ import annotations

from pathlib import Path

import pytest

from .chaos import run_with_kills


@pytest.mark.slow
def test_random_kills_lose_no_release_and_make_no_second_answer(tmp_path: Path) -> None:
    outcome = run_with_kills(tmp_path, 12, seed=6)
    assert outcome.n_finished >= 2
    assert outcome.n_releases >= 18  # a run from its beginning to its end, at least
