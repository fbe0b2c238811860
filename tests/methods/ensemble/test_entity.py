"""The trusted entity: what one party, or one auxiliary row, can move in its model, and the noise over it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tacit import Rng
from tacit.errors import NotConverged
from tacit.methods.cohort import Promise
from tacit.methods.ensemble.entity import EntityRelease, default_l2_mean
from tacit.methods.ensemble.label import fit_labels


def entity_of(
    Z: np.ndarray | None, *, paper: bool = False, epsilon: float = 1.0, delta: float = 0.0, **changes: Any
) -> EntityRelease:
    promise = Promise(method="Ensemble", epsilon=epsilon, delta=delta, calibration="paper" if paper else "sound")
    start = EntityRelease(
        labels="soft", promise=promise, l2_mean=0.1, n_parties=3, n_classes=2,
        radius=1.0 if Z is None else float(np.linalg.norm(Z, axis=1).max()), rows=Z, protect_auxiliary=False,
    )  # fmt: skip
    return replace(start, **changes)


def global_model(entity: EntityRelease, Z: np.ndarray, votes: np.ndarray) -> np.ndarray:
    A = np.mean(np.eye(entity.n_classes)[votes], axis=0)
    if entity.labels == "vote":
        A = np.eye(entity.n_classes)[np.argmax(A, axis=1)]
    return fit_labels(Z, A.T @ Z / len(Z), entity.l2_mean).theta


unit_rows = arrays(np.float64, (3, 2), elements=st.floats(-0.6875, 0.6875, width=32))


@given(
    Z=unit_rows,
    classes=st.integers(2, 3),
    labels=st.sampled_from(["soft", "vote"]),
    l2_mean=st.floats(1e-3, 2.0),
    protect=st.booleans(),
    data=st.data(),
)
@settings(max_examples=120, deadline=None)
def test_the_minimiser_moves_by_no_more_than_its_sensitivity(
    Z: np.ndarray, classes: int, labels: str, l2_mean: float, protect: bool, data: st.DataObject
) -> None:
    """A whole party's votes are replaced and, with protect_auxiliary, one auxiliary row with them."""
    Z = Z + 1e-3
    entity = entity_of(
        Z, labels=labels, n_classes=classes, l2_mean=l2_mean, protect_auxiliary=protect, radius=1.0, n_parties=3
    )
    votes = data.draw(arrays(np.int64, (3, 3), elements=st.integers(0, classes - 1)))
    others = votes.copy()
    others[0] = data.draw(arrays(np.int64, 3, elements=st.integers(0, classes - 1)))
    Z_other = Z.copy()
    if protect:
        Z_other[0] = data.draw(arrays(np.float64, 2, elements=st.floats(-0.6875, 0.6875, width=32)))
        others[:, 0] = data.draw(arrays(np.int64, 3, elements=st.integers(0, classes - 1)))
    moved = np.linalg.norm(global_model(entity, Z, votes) - global_model(entity, Z_other, others))
    assert moved <= entity.sensitivity


def test_the_minimisers_sensitivity_is_nearly_reached() -> None:
    """A lone row whose every vote is turned about, under strong regularisation."""
    Z = np.array([[1.0]])
    for labels, voters in (("soft", 1), ("vote", 3)):
        entity = entity_of(Z, labels=labels, l2_mean=5.0, n_parties=voters)
        one, other = (global_model(entity, Z, np.full((voters, 1), c)) for c in (0, 1))
        assert np.linalg.norm(one - other) >= 0.9 * entity.sensitivity


PRINTED = [
    ("soft", 2, 2 / 30), ("soft", 3, math.sqrt(2) / 30), ("vote", 2, 2 / 0.1), ("vote", 3, math.sqrt(2) / 0.1),
    ("avg", 2, 2 / 30), ("avg", 3, 2 * math.sqrt(2) / 30),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "classes", "printed"), PRINTED)
def test_the_printed_sensitivities_and_their_noise(labels: str, classes: int, printed: float) -> None:
    Z = np.array([[1.0, 0.0], [0.0, 1.0]])
    entity = entity_of(
        None if labels == "avg" else Z, labels=labels, n_classes=classes, paper=True, n_parties=300, epsilon=0.5
    )
    assert entity.sensitivity == pytest.approx(printed)
    theta = np.zeros((classes, 2) if classes > 2 else 2)
    rng = Rng.seeded(1)
    radii = [np.linalg.norm(entity.noised(theta, rng=rng)) for _ in range(300)]
    assert stats.kstest(radii, stats.gamma(theta.size, scale=printed / 0.5).cdf).pvalue > 1e-3


def test_sound_constants_need_less_noise_than_the_printed_ones() -> None:
    Z = np.array([[1.0, 0.0], [0.6, 0.8]])
    for labels in ("soft", "vote"):
        sound, paper = (entity_of(Z, labels=labels, paper=paper) for paper in (False, True))
        assert sound.sensitivity <= 0.501 * paper.sensitivity
    weak = entity_of(Z, labels="vote", l2_mean=1e-4, n_classes=6)  # ||W|| <= sqrt(W(5/e) / lambda), whatever the labels
    assert weak.sensitivity <= 2.01 * math.sqrt(0.8146 / 1e-4)
    assert entity_of(None, labels="avg", l2_mean=1e-4, n_classes=6, n_parties=1000).sensitivity <= 0.181


def test_protecting_an_auxiliary_row_costs_the_printed_factor_and_no_less_in_the_sound_form() -> None:
    Z = np.tile([[1.0, 0.0]], (1000, 1))
    plain, protected = (entity_of(Z, paper=True, protect_auxiliary=p, n_parties=300) for p in (False, True))
    assert protected.sensitivity == pytest.approx(plain.sensitivity * (1000 + 300 - 1) / 1000)
    vote = entity_of(Z, paper=True, protect_auxiliary=True, labels="vote")
    assert vote.sensitivity == pytest.approx(2 / 0.1)
    sound = entity_of(Z, protect_auxiliary=True, n_parties=300, l2_mean=0.001)
    tight = (1000 + 2 * 300 - 1) / 1000 / (300 * 0.001)  # with the constant 1 the factor is (N + 2M - 1)/N
    assert 0.9 * tight <= sound.sensitivity <= 1.01 * tight


def test_the_entity_projects_models_and_needs_a_certified_fit() -> None:
    entity = entity_of(None, labels="avg", l2_mean=1.0)
    far, near = np.array([1e6, 0.0]), np.array([0.0, 0.1])
    np.testing.assert_allclose(entity.average([far, near]), [entity.norm_bound / 2, 0.05])
    solution = fit_labels(np.array([[1.0]]), np.array([[0.5], [0.5]]), 0.1)
    strict = entity_of(np.array([[1.0]]))
    assert strict.check(solution) is solution.theta
    with pytest.raises(NotConverged, match="larger global_l2"):
        strict.check(replace(solution, distance_bound=1.0))


def test_sound_noise_of_the_entity_covers_its_sensitivity() -> None:
    entity = entity_of(np.array([[1.0, 0.0], [0.0, 1.0]]), n_classes=3, epsilon=0.5)
    rng = Rng.seeded(2)
    theta = np.array([[0.1, -0.2], [0.3, 0.0], [-0.4, 0.2]])  # classes sum to 0, and so does the noise
    draws = np.array([entity.noised(theta, rng=rng) - theta for _ in range(300)])
    np.testing.assert_allclose(draws.sum(axis=1), 0, atol=1e-6)
    radii = np.linalg.norm(draws, axis=(1, 2))
    assert stats.kstest(radii, stats.gamma(4, scale=entity.sensitivity / 0.5 * 128 / 127).cdf).pvalue > 1e-3
    gauss = entity_of(np.array([[1.0, 0.0]]), delta=1e-5)
    spread = np.std([gauss.noised(np.zeros(2), rng=rng) for _ in range(300)])
    assert 3 < spread / gauss.sensitivity < 5  # 3.8 standard deviations at (1, 1e-5)


def test_the_entitys_regularisation_is_a_rule_of_public_numbers() -> None:
    Z = np.tile([[0.6, 0.8]], (100, 1))
    strict, loose = (default_l2_mean(entity_of(Z, epsilon=e), 4) for e in (0.1, 1.0))
    assert strict > loose
    assert default_l2_mean(entity_of(Z, epsilon=math.inf), 4) == 0.01
    assert default_l2_mean(entity_of(Z, delta=1e-6), 4) > 0.01
    assert default_l2_mean(entity_of(Z, labels="vote"), 4) > loose
