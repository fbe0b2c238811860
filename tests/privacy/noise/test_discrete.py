from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.errors import SettingError
from tacit.privacy.noise import discrete as noise
from tacit.privacy.noise.discrete import discrete_gaussian, discrete_laplace
from tacit.privacy.noise.uniform import LazyUniform
from tacit.rand import Rng

Ints = NDArray[np.int64]
Sampler = Callable[..., Ints]
SCALES = [0.3, 1.0, 3.7, 15.999, 16.0, 50.0, 1e5]


class Scripted(Rng):
    """Hands out the given words first, then a seeded stream."""

    def __init__(self, *words: int) -> None:
        super().__init__(b"scripted")
        self.script = list(words)

    def bytes(self, n: int) -> bytes:
        taken, self.script = self.script[: n // 8], self.script[n // 8 :]
        return b"".join(word.to_bytes(8, "little") for word in taken) + super().bytes(n - 8 * len(taken))


def weight(sampler: Sampler, k: int, scale: float) -> mpmath.mpf:
    return mpmath.exp(
        -abs(k) / mpmath.mpf(scale) if sampler is discrete_laplace else -((mpmath.mpf(k) / scale) ** 2) / 2
    )


def exact_bins(sampler: Sampler, scale: float) -> tuple[list[int], list[float]]:
    """Edges and exact probabilities of the bins (-inf, e0), [e0, e1), ..., [em, inf)."""
    reach = math.ceil(6 * scale) + 3
    edges = sorted({round(x) for x in np.linspace(-reach / 2, reach / 2, 60)})
    far = 12 * reach
    if scale < 1e3:
        mass = {k: weight(sampler, k, scale) for k in range(-far, far + 1)}
        total = mpmath.fsum(mass.values())
        below = [float(mpmath.fsum(m for k, m in mass.items() if k < edge) / total) for edge in edges]
    else:  # the midpoint rule is exact to far more digits than any sample can see
        law = stats.laplace(scale=scale) if sampler is discrete_laplace else stats.norm(scale=scale)
        below = [float(law.cdf(edge - 0.5)) for edge in edges]
    return edges, np.diff([0.0, *below, 1.0]).tolist()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_frequencies_match_the_exact_probabilities(sampler: Sampler, scale: float) -> None:
    n = 200_000
    draws = sampler(scale, n, rng=Rng.seeded(20))
    edges, probabilities = exact_bins(sampler, scale)
    counts = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(probabilities))
    expected = n * np.array(probabilities)
    common = expected > 5
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    if wanted[-1] == 0:
        observed, wanted = observed[:-1], wanted[:-1]
    assert stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 1e-3


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_a_wrong_scale_would_be_noticed(sampler: Sampler) -> None:
    """The test above has teeth: two per cent too little noise fails it."""
    draws = sampler(3.7 * 0.98, 200_000, rng=Rng.seeded(20))
    edges, probabilities = exact_bins(sampler, 3.7)
    counts = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(probabilities))
    common = 200_000 * np.array(probabilities) > 5
    expected = 200_000 * np.array(probabilities)[common]
    assert stats.chisquare(counts[common], expected * counts[common].sum() / expected.sum()).pvalue < 1e-6


@pytest.mark.parametrize("scale", [0.7, 4.0, 30.0])
def test_laws_agree_with_opendp(scale: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = dp.m.make_laplace(*space, scale=scale)([0] * 5000)
    ours = discrete_laplace(scale, 50_000, rng=Rng.seeded(4))
    assert _two_sample_p_value(ours, np.array(theirs)) > 1e-6  # OpenDP's draws cannot be seeded
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = dp.m.make_gaussian(*space, scale=scale)([0] * 5000)
    ours = discrete_gaussian(scale, 50_000, rng=Rng.seeded(4))
    assert _two_sample_p_value(ours, np.array(theirs)) > 1e-6


def _two_sample_p_value(a: Ints, b: Ints) -> float:
    edges = np.unique(np.quantile(a, np.linspace(0.02, 0.98, 25)).astype(int))
    table = [np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (a, b)]
    return float(stats.chi2_contingency(table).pvalue)


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_extreme_scales(sampler: Sampler) -> None:
    assert not sampler(0.01, 10_000, rng=Rng.seeded(1)).any()
    assert not sampler(2.0**-40, 1000, rng=Rng.seeded(1)).any()
    wide = sampler(2.0**40, 100_000, rng=Rng.seeded(1)) / 2.0**40
    assert wide.std() == pytest.approx(math.sqrt(2) if sampler is discrete_laplace else 1, rel=0.01)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan, 2.0**41])
def test_scales_beyond_the_proof_are_refused(scale: float) -> None:
    with pytest.raises(SettingError, match="scale = "):
        discrete_laplace(scale, 1, rng=Rng.seeded(1))
    with pytest.raises(SettingError, match="noise_std = "):
        discrete_gaussian(scale, 1, rng=Rng.seeded(1))


def test_shapes_and_seeds() -> None:
    assert discrete_laplace(2.0, (3, 4), rng=Rng.seeded(1)).shape == (3, 4)
    assert discrete_gaussian(2.0, 0, rng=Rng.seeded(1)).shape == (0,)
    assert (discrete_gaussian(9.0, 99, rng=Rng.seeded(1)) == discrete_gaussian(9.0, 99, rng=Rng.seeded(1))).all()
    with pytest.raises(SettingError, match="size = -1"):
        discrete_gaussian(2.0, -1, rng=Rng.seeded(1))


@pytest.mark.parametrize("function", [np.exp, np.log, np.log1p, np.cos, np.sin])
def test_numpy_is_as_good_as_the_proofs_assume(function: np.ufunc) -> None:
    """Within 4 units in the last place on the ranges that the samplers use, in vectors of every length."""
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.random(3000), 10.0 ** rng.uniform(-30, 0, 1000)])
    x = {"exp": -50 * u, "log": u, "log1p": -u / 2, "cos": u * math.pi / 2, "sin": u * math.pi / 2}[function.__name__]
    exact = getattr(mpmath, function.__name__)
    with mpmath.workprec(200):
        for part in (x, x[:3]):
            errors = [
                abs(mpmath.mpf(float(y)) / exact(mpmath.mpf(float(v))) - 1)
                for v, y in zip(part, function(part), strict=True)
            ]
            limit = mpmath.mpf(2) ** -50
            # Near its zero a cosine is good to that size in the absolute, which is all that is used.
            assert max(e for e, v in zip(errors, part, strict=True) if function is not np.cos or v < 1.5) <= limit


@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(7, 2), Fraction(10**12, 10**12 + 1), Fraction(44)])
@pytest.mark.parametrize("n_words", [1, 2, 5])
def test_ambiguous_comparisons_are_decided_as_mpmath_decides_them(exponent: Fraction, n_words: int) -> None:
    """Words that agree with exp(-exponent) in all of 64 n digits, then fall below or above it."""
    with mpmath.workprec(2000):
        threshold = int(mpmath.floor(mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * 2**1000))
    digits = threshold >> (1000 - 64 * n_words)
    words = [digits >> 64 * (n_words - 1 - i) & (2**64 - 1) for i in range(n_words)]
    for last, expected in ((0, True), (2**64 - 1, False)):
        rng = Scripted(*words[1:], last)
        assert LazyUniform(words[0], rng=rng).is_below_exp(exponent) is expected
        assert not rng.script  # it had to read that far


def test_comparisons_with_certainty_and_next_to_nothing() -> None:
    assert LazyUniform(2**64 - 1, rng=Scripted()).is_below_exp(Fraction(0))
    assert not LazyUniform(1, rng=Scripted()).is_below_exp(Fraction(10**9))
    # exp(-150) lies between 2**-217 and 2**-216; the uniforms here are just above 2**-256 and 2**-206.
    assert LazyUniform(0, rng=Scripted(0, 0, 1)).is_below_exp(Fraction(150))
    assert not LazyUniform(0, rng=Scripted(0, 0, 2**50)).is_below_exp(Fraction(150))


def test_a_proposal_on_the_margin_takes_the_slow_path(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Fraction, Fraction]] = []
    real = LazyUniform.is_below_exp

    def spy(self: LazyUniform, exponent: Fraction, factor: Fraction = Fraction(1)) -> bool:
        asked.append((exponent, factor))
        return real(self, exponent, factor)

    monkeypatch.setattr(LazyUniform, "is_below_exp", spy)
    exact = Fraction(1, 2), Fraction(5, 4)
    word = int(mpmath.floor(1.25 * mpmath.exp(-0.5) * 2**64))

    def accept(shift: int) -> list[bool]:
        words = np.array([word + shift], dtype=np.uint64)
        return noise._accept(words, np.array([0.5]), np.array([1.25]), lambda i: exact, Scripted()).tolist()

    assert accept(-(2**20)) == [True]
    assert accept(2**20) == [False]
    assert asked == [exact, exact]
    assert accept(2**23) == [False]
    assert accept(-(2**23)) == [True]
    assert len(asked) == 2


@pytest.mark.parametrize("factor", [Fraction(1, 3), Fraction(10**9, 7)])
def test_a_factor_is_compared_with_exactly(factor: Fraction) -> None:
    exponent = Fraction(30)
    with mpmath.workprec(2000):
        exact = factor.numerator * mpmath.exp(-30) / factor.denominator
        digits = int(mpmath.floor(exact * 2**128))
    for last, expected in ((0, True), (2**64 - 1, False)):
        rng = Scripted(digits & (2**64 - 1), last)
        assert LazyUniform(digits >> 64, rng=rng).is_below_exp(exponent, factor) is expected
        assert not rng.script


LAWS = [law(scale) for law in (noise._Laplace, noise._Gaussian) for scale in (2.0**-40, *SCALES, 1e12, 2.0**40)]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_proposal_is_accepted_with_a_probability_that_gives_the_law(law: noise._Law) -> None:
    """Probability of a slot times that of acceptance is the same multiple of exp(-g) in every block and both tails."""
    slots = noise._Slots(law)
    n_slots, t = 2**12, 1 << slots.log_t
    blocks, counts = np.unique(slots.first[:-2], return_counts=True)
    assert blocks.tolist() == list(range(-slots.reach, slots.reach, t))  # each integer has one block or tail
    assert slots.first.size == slots.taken.size == slots.sure.size == n_slots
    index = {int(block): int(np.flatnonzero(slots.first[:-2] == block)[0]) for block in blocks}
    with mpmath.workprec(300):
        for block, count in zip(blocks.tolist(), counts.tolist(), strict=True):
            i = index[block]
            assert slots.taken[i] == count  # factor C / n_a times probability n_a / (S t) is C / (S t)
            ends = [_p(slots, x) / count for x in (block, block + t - 1)]
            assert max(ends) < 1
            assert int(slots.sure[i]) <= 2**16 * min(ends)
            assert int(slots.sure[i]) >= 2**16 * min(ends) - 1.001  # nor is time lost
        for level in (1, 2, 3, 10, 100):
            start = slots.reach + (level - 1) * slots.stride
            for x in (start, -1 - start):
                # Probability 2**-level / (S T), so the factor C 2**level T / t makes it C / (S t) as well.
                assert _p(slots, x) * 2**level * slots.stride / t <= 1
    assert not slots.sure[-2:].any()


def _p(slots: noise._Slots, x: int) -> mpmath.mpf:
    g = slots.law.exact_exponent(x)
    return mpmath.mpf(slots.constant) * mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator)


@pytest.mark.parametrize("law", [noise._Gaussian(3.7), noise._Laplace(1e5), noise._Gaussian(1e5)], ids=str)
def test_floats_stand_for_the_exact_exponents_and_factors(law: noise._Law, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = noise._accept

    def spy(words: Ints, exponents: Ints, factors: Ints, exact: Callable[..., tuple], rng: Rng) -> NDArray[np.bool_]:
        seen.extend((g, factor, *exact(i)) for i, (g, factor) in enumerate(zip(exponents, factors, strict=True)))
        return real(words, exponents, factors, exact, rng)

    monkeypatch.setattr(noise, "_accept", spy)
    slots = noise._Slots(law)
    tails = np.array([4094, 4095] * 20)
    x, _ = slots._decide(np.zeros(40, dtype=np.int64), tails, np.zeros(40, dtype=np.uint64), Rng.seeded(3))
    assert (x[::2] >= slots.reach).all()
    assert (x[1::2] < -slots.reach).all()
    slots.propose(2000, Rng.seeded(4))
    assert len(seen) > 40
    for g, factor, exact_g, exact_factor in seen:
        assert g == pytest.approx(float(exact_g), rel=2**-50)
        assert factor == pytest.approx(float(exact_factor), rel=2**-51)
        assert 0 < factor * math.exp(-g) < 1
    constants = {round(factor / slots.constant * 2**20) for _, factor, _, _ in seen[:40]}
    levels = {slots.stride / (1 << slots.log_t) * 2**level for level in range(1, 40)}
    assert constants <= {round(level * 2**20) for level in levels}


def test_levels_halve() -> None:
    counts = np.bincount(noise._levels(100_000, Rng.seeded(5)), minlength=30)
    assert counts[0] == 0
    expected = 100_000 * 0.5 ** np.arange(1, 13)
    assert stats.chisquare(counts[1:13], expected * counts[1:13].sum() / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("law", [noise._Gaussian(3.7), noise._Gaussian(30.0), noise._Laplace(30.0)], ids=str)
def test_what_a_tail_yields_has_the_laws_own_tail(law: noise._Law) -> None:
    """Draws beyond R are too rare to be counted otherwise: only the tails' slots are proposed here."""
    slots, n = noise._Slots(law), 400_000
    tails = np.resize(np.array([4094, 4095]), n)
    rng = Rng.seeded(6)
    r = rng.words(n) >> np.uint64(48)
    x, accepted = slots._decide(np.zeros(n, dtype=np.int64), tails, r, rng)
    kept = x[accepted]
    mass = {k: float(_p(slots, k)) for k in range(-3000, 3001) if k >= slots.reach or k < -slots.reach}
    # A tail's slot has probability 1 / S, and C f / (S t) of every x is accepted: of n tails, n C f / (2 t).
    assert stats.binomtest(kept.size, n, sum(mass.values()) / (2 << slots.log_t)).pvalue > 1e-3
    values = np.array([k for k, p in mass.items() if p * kept.size / sum(mass.values()) > 5])
    expected = np.array([mass[int(k)] for k in values])
    observed = np.array([(kept == k).sum() for k in values])
    assert values.size > 5
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [0.3, 3.7, 50.0, 1e5])
def test_the_slow_path_alone_gives_the_same_draws(
    sampler: Sampler, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every comparison made exactly: nothing changes, since the floats never decided wrongly."""
    fast = sampler(scale, 3000, rng=Rng.seeded(8))
    monkeypatch.setattr(noise, "_MARGIN", 2.0)
    slow = sampler(scale, 3000, rng=Rng.seeded(8))
    assert (fast == slow).all()
