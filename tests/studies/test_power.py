"""How many records an interval needs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.errors import SettingError
from tacit.studies.forecast import forecast
from tacit.studies.power import records_needed, solve_for_size
from tacit.studies.rehearsal import Rehearsal
from tacit.studies.study import PrivacyRequest, Study

STUDY = Study(
    name="toy",
    purpose="How many?",
    schema=Schema(tuple(Numeric(f"x{k}", -1, 1) for k in range(3)), Target("y", ("no", "yes")), norm_bound=1.0),
    method="private-newton",
    privacy=PrivacyRequest(epsilon=1.0, delta=1e-6),
)


@pytest.mark.parametrize(("a", "b"), [(9.0, 0.0), (0.0, 4e6), (5.0, 3e4)])
def test_the_law_is_solved_exactly(a: float, b: float) -> None:
    tried = {n: math.sqrt(a / n + b / n**2) for n in (500, 1000, 4000)}
    for n in (700, 20_000):
        assert solve_for_size(tried, math.sqrt(a / n + b / n**2)) == pytest.approx(n, abs=1)
    assert solve_for_size(tried | {100: math.inf}, tried[1000]) == pytest.approx(1000, abs=1)
    assert solve_for_size({100: math.inf}, 0.1) is None


@pytest.mark.parametrize(("method", "wanted"), [("private-newton", 0.5), ("private-newton", 0.1), ("pooled", 0.1)])
def test_so_many_records_give_so_wide_an_interval(method: str, wanted: float) -> None:
    study = replace(STUDY, method=method, privacy=STUDY.privacy if method == "private-newton" else None)
    needed = records_needed(Rehearsal(study=study, sizes={"a": 2000, "b": 1000}), term="x1", half_width=wanted)
    assert needed.n_records is not None
    assert not needed.is_beyond
    sizes = {"a": 2 * needed.n_records // 3, "b": needed.n_records // 3}
    (told,) = forecast(study, sizes, repeats=20).forecasts
    half_width = next(width.half_width for width in told.widths if width.term == "x1")
    assert half_width == pytest.approx(wanted, rel=0.25)  # made-up effects differ from one rehearsal to the next


def test_what_lies_beyond_every_rehearsal_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.studies.power._MOST_RECORDS", 4000)
    plan = Rehearsal(study=STUDY, sizes={"a": 1000, "b": 1000}, repeats=2)
    needed = records_needed(plan, term="x0", half_width=0.01)
    assert needed.is_beyond
    assert max(size.n_records for size in needed.tried) == 4000
    assert needed.n_records is not None
    assert needed.n_records > 100_000


@pytest.mark.parametrize(
    ("method", "term", "half_width", "match"),
    [
        ("private-newton", "age", 0.1, r"coefficient 'age' is unknown; the model has \(intercept\), x0, x1, x2"),
        ("private-newton", "x0", 0.0, "half_width = 0.0 must be a number above 0"),
        ("private-newton", "x0", np.inf, "half_width = inf must be a number above 0"),
        ("averaging", "x0", 0.1, "averaging gives no intervals"),
    ],
)
def test_what_cannot_be_asked_is_refused(method: str, term: str, half_width: float, match: str) -> None:
    plan = Rehearsal(study=replace(STUDY, method=method), sizes={"a": 500, "b": 500}, repeats=2)
    with pytest.raises(SettingError, match=match):
        records_needed(plan, term=term, half_width=half_width)
