"""The AUC from a noisy histogram: exact without noise, and an interval that holds as often as it says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tacit.methods.evaluation.auc import auc_interval

Floats = npt.NDArray[np.float64]
BINS = 20


def histogram(scores: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> Floats:
    return np.bincount(scores + BINS * y, minlength=2 * BINS).astype(np.float64)


def drawn(chance: np.random.Generator, n: int, apart: float, share: float) -> Floats:
    """Scores of two classes that are so far apart, in cells as they would be sent."""
    y = (chance.uniform(size=n) < share).astype(np.int64)
    scores = chance.normal(size=n) + apart * (y - share)
    return histogram(np.clip((1 / (1 + np.exp(-1.702 * scores)) * BINS).astype(np.int64), 0, BINS - 1), y)


def test_without_noise_it_is_the_share_of_pairs_in_the_right_order() -> None:
    chance = np.random.default_rng(1)
    y, cells = chance.integers(0, 2, 200), chance.integers(0, BINS, 200)
    found = auc_interval(histogram(cells, y), noise_std=0.0, confidence=0.95)
    assert found is not None
    pairs = np.sign(cells[y == 1][:, None] - cells[y == 0][None, :])
    assert found.auc == pytest.approx(float(np.mean((pairs + 1) / 2)), rel=1e-12)
    assert found.low < found.auc < found.high


@pytest.mark.parametrize(("n", "apart", "share", "noise"), [
    (2000, 1.0, 0.5, 0.0), (2000, 1.0, 0.5, 20.0), (3000, 2.5, 0.1, 4.0), (600, 0.0, 0.3, 3.0),
])  # fmt: skip
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_it_holds_as_often_as_it_says(n: int, apart: float, share: float, noise: float, confidence: float) -> None:
    chance, held = np.random.default_rng(3), []
    big = auc_interval(drawn(chance, 2_000_000, apart, share), noise_std=0.0, confidence=0.95)
    assert big is not None
    for _ in range(600):
        counts = drawn(chance, n, apart, share) + noise * chance.normal(size=2 * BINS)
        found = auc_interval(counts, noise_std=noise, confidence=confidence)
        assert found is not None
        held.append(found.low <= big.auc <= found.high)
    spread = np.sqrt(confidence * (1 - confidence) / 600)
    assert confidence - 4 * spread < np.mean(held) < confidence + 4 * spread + 0.01


def test_twenty_cells_hide_little_of_the_order_within_them() -> None:
    chance = np.random.default_rng(5)
    found = auc_interval(drawn(chance, 2_000_000, 1.0, 0.5), noise_std=0.0, confidence=0.95)
    assert found is not None
    assert found.auc == pytest.approx(0.7602, abs=0.003)  # the normal distribution's function at 1 / sqrt 2


@pytest.mark.parametrize("share", [0.0, 1.0, 0.01])
def test_a_class_that_drowns_in_noise_has_no_auc(share: float) -> None:
    chance = np.random.default_rng(7)
    counts = drawn(chance, 1000, 1.0, share) + 10 * chance.normal(size=2 * BINS)
    assert auc_interval(counts, noise_std=10.0, confidence=0.95) is None
    assert auc_interval(np.zeros(2 * BINS), noise_std=0.0, confidence=0.95) is None


@pytest.mark.parametrize("noise", [0.0, 1e6])
def test_it_stays_between_0_and_1_whatever_is_opened(noise: float) -> None:
    chance = np.random.default_rng(9)
    for _ in range(100):
        counts = chance.normal(size=2 * BINS) * 1e6 + 5e6
        found = auc_interval(counts, noise_std=noise / 1e3, confidence=0.999)
        assert found is None or 0 <= found.low <= found.auc <= found.high <= 1
    apart = np.concatenate([np.eye(1, BINS, 0)[0], np.eye(1, BINS, BINS - 1)[0]]) * 500
    found = auc_interval(apart, noise_std=0.0, confidence=0.95)
    assert found is not None
    assert found.high == pytest.approx(1.0, abs=1e-3)
