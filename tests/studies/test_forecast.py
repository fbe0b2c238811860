"""Forecasts: what is rehearsed is what the run then gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.data.synthetic import PublicGuess, synthetic_table
from tacit.data.typical import TypicalValue
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.rand import Rng
from tacit.studies.forecast import forecast
from tacit.studies.run import method_of
from tacit.studies.study import PrivacyRequest, Study

SCHEMA = Schema(tuple(Numeric(f"x{k}", -1, 1) for k in range(4)), Target("y", ("no", "yes")), norm_bound=1.0)
STUDY = Study(
    name="toy",
    purpose="Does a rehearsal tell the run?",
    schema=SCHEMA,
    method="functional-mechanism",
    privacy=PrivacyRequest(epsilon=1.0, delta=1e-6),
)
SIZES = {"a": 3000, "b": 1000, "c": 500}


def test_rounds_bytes_and_accuracy_are_those_of_the_run() -> None:
    population = synthetic_table(SCHEMA, 20_000, guess=PublicGuess(accuracy=0.85), rng=Rng.seeded(7))
    public = population.take(np.arange(8000), "public")
    told = forecast(STUDY, SIZES, epsilons=[0.05], public=public)
    assert [f.epsilon for f in told.forecasts] == [0.05, 1.0]
    strict, usual = told.forecasts
    rows = np.split(np.arange(8000, 12_500), np.cumsum(list(SIZES.values()))[:-1])
    parties = Federation.from_tables(
        {name: population.take(part, name) for name, part in zip(SIZES, rows, strict=True)}
    )
    test = population.take(np.arange(12_500, 20_000), "test")
    models = [method_of(STUDY).fit(parties) for _ in range(5)]
    assert usual.rounds == models[0].n_rounds_
    assert usual.n_bytes == pytest.approx(models[0].facts_.traffic.bytes_total, rel=0.05)
    assert usual.accuracy.mean == pytest.approx(np.mean([model.score(test) for model in models]), abs=0.02)
    assert usual.is_useful
    assert strict.accuracy.mean < usual.accuracy.mean < told.exact_accuracy + 0.01


def test_a_study_that_is_too_small_is_called_useless() -> None:
    told = forecast(replace(STUDY, privacy=PrivacyRequest(epsilon=0.01, delta=1e-6)), {"a": 20, "b": 20}, repeats=3)
    (found,) = told.forecasts
    assert not found.is_useful
    assert "made-up records" in told.rehearsed_on


NEWTON = replace(STUDY, method="private-newton", privacy=PrivacyRequest(epsilon=0.5, delta=1e-6))


@pytest.mark.parametrize(("share", "auc"), [(0.5, 0.85), (0.12, 0.8)])
def test_auc_and_widths_are_those_of_runs_where_the_guesses_are_right(share: float, auc: float) -> None:
    """Runs on populations of the guess that the forecast has not seen; within 15 %, as is promised."""
    guess = PublicGuess(positive_share=share, auc=auc)
    sizes = {"a": 4000, "b": 2000, "c": 2000}
    (told,) = forecast(NEWTON, sizes, positive_share=share, plain_auc=auc, repeats=12).forecasts
    areas, widths = [], []
    rows = np.split(np.arange(8000), np.cumsum(list(sizes.values()))[:-1])
    for seed in range(100, 112):
        population = synthetic_table(SCHEMA, 18_000, guess=guess, rng=Rng.seeded(seed))
        tables = {name: population.take(part, name) for name, part in zip(sizes, rows, strict=True)}
        model = method_of(NEWTON).fit(Federation.from_tables(tables))
        areas.append(model.evaluate(population.take(np.arange(8000, 18_000), "test")).auc)
        widths.append([row.half_width for row in model.facts_.coefficients])
    assert told.auc is not None
    assert told.auc.mean == pytest.approx(np.mean(areas), rel=0.15)  # type: ignore[arg-type]
    assert [width.term for width in told.widths] == ["(intercept)", "x0", "x1", "x2", "x3"]
    found = np.median(np.array(widths, dtype=float), axis=0)
    assert np.median([width.half_width for width in told.widths] / found) == pytest.approx(1, rel=0.15)
    for width in told.widths:
        assert width.half_width == pytest.approx(1.959964 * width.standard_error, rel=1e-6)


def test_a_skewed_target_is_held_against_its_class_frequencies() -> None:
    """Almost all records are of one class: its accuracy alone is no use, and a weak model gains next to nothing."""
    study = replace(NEWTON, privacy=PrivacyRequest(epsilon=0.02, delta=1e-6))
    told = forecast(study, {"a": 1000, "b": 1000}, positive_share=0.08, repeats=4, epsilons=[20.0])
    strict, loose = told.forecasts
    assert told.majority_rate == pytest.approx(0.92, abs=0.01)
    assert told.base_log_loss == pytest.approx(-0.08 * np.log(0.08) - 0.92 * np.log(0.92), abs=0.02)
    assert not strict.is_useful
    assert loose.is_useful
    assert loose.log_loss_gain.mean > 0.03
    assert loose.accuracy_gain.mean == pytest.approx(loose.accuracy.mean - told.majority_rate, abs=1e-9)
    assert "0.08 of them 'yes'" in told.rehearsed_on


def test_intervals_widen_as_epsilon_falls_and_the_curve_says_so() -> None:
    told = forecast(NEWTON, SIZES, epsilons=[5.0, 50.0], repeats=3)
    factors = [point.mean for point in told.curve("widening")]
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] == pytest.approx(1, abs=0.25)
    for point, found in zip(told.width_curve("x1"), told.forecasts, strict=True):
        half_width = next(width.half_width for width in found.widths if width.term == "x1")
        assert point.mean == pytest.approx(half_width / told.exact_widths["x1"])


def test_the_sandwich_is_planned_as_one_more_round_and_its_width_is_forecast() -> None:
    robust = replace(NEWTON, settings={**NEWTON.settings, "robust": True})
    (plain,), (found,) = (forecast(study, SIZES, repeats=5).forecasts for study in (NEWTON, robust))
    assert found.rounds == plain.rounds + 1
    assert found.widening is not None
    assert plain.widening is not None
    assert 0.95 < found.widening.mean / plain.widening.mean < 1.3


def test_a_method_without_intervals_forecasts_none() -> None:
    told = forecast(STUDY, SIZES, repeats=2)
    (found,) = told.forecasts
    assert (found.widths, found.widening, found.not_identified) == ((), None, 0.0)
    assert told.alternative == ()


def test_widths_are_a_range_over_two_shapes_of_made_up_records() -> None:
    study = replace(NEWTON, privacy=PrivacyRequest(epsilon=20.0, delta=1e-6))
    told = forecast(study, SIZES, repeats=2)
    (wide,), (narrow,) = told.forecasts, told.alternative
    for low, high in list(zip(wide.widths, narrow.widths, strict=True))[1:]:
        assert high.half_width > 3 * low.half_width
    typical = [TypicalValue(name=f"x{k}", figures=(0.0, 2 / 30)) for k in range(4)]
    known = forecast(study, SIZES, typical=typical, repeats=2)
    ratios = [a.half_width / b.half_width for a, b in zip(known.alternative[0].widths, narrow.widths, strict=True)]
    assert np.median(ratios) == pytest.approx(1, rel=0.2)  # only how columns go together is left to guess
    assert np.median([width.half_width for width in known.forecasts[0].widths]) > 2 * wide.widths[1].half_width


def test_one_study_has_one_forecast() -> None:
    first, second = (forecast(STUDY, SIZES, repeats=2) for _ in range(2))
    assert [found.accuracy for found in first.forecasts] == [found.accuracy for found in second.forecasts]


def test_an_exact_method_has_one_forecast() -> None:
    told = forecast(replace(STUDY, method="pooled", privacy=None), SIZES, epsilons=[0.1, 1], repeats=2)
    assert [f.epsilon for f in told.forecasts] == [np.inf]
    assert told.forecasts[0].loss_of_accuracy == pytest.approx(0, abs=0.01)
    assert told.curve() == []


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sizes": {}}, "each party at least one record"),
        ({"sizes": {"a": 0}}, "each party at least one record"),
        ({"repeats": 1}, "repeats = 1 gives no error bars"),
        ({"plain_accuracy": 1.0}, "accuracy = 1.0 must lie between"),
        ({"positive_share": 0.0}, "positive_share = 0.0 must lie between 0 and 1"),
        ({"method": "ensemble"}, "ensemble cannot be rehearsed from a study file alone"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(changes: dict[str, object], match: str) -> None:
    with pytest.raises(SettingError, match=match):
        forecast(STUDY, **{"sizes": SIZES, "repeats": 2} | changes)  # type: ignore[arg-type]


def test_public_records_must_fit_the_study() -> None:
    other = Schema((Numeric("z", 0, 1),), Target("y", ("no", "yes")))
    with pytest.raises(SettingError, match="other columns than the study"):
        forecast(STUDY, SIZES, public=synthetic_table(other, 100, rng=Rng.seeded(1)))
    with pytest.raises(SettingError, match="10 public records are too few"):
        forecast(STUDY, SIZES, public=synthetic_table(SCHEMA, 10, rng=Rng.seeded(1)))
    with pytest.raises(SettingError, match="bring their own share"):
        forecast(STUDY, SIZES, public=synthetic_table(SCHEMA, 100, rng=Rng.seeded(1)), positive_share=0.1)
