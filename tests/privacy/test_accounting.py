from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld

from tacit.errors import SettingError
from tacit.privacy.accounting import (
    epsilon_of,
    guarantee_of,
    least_noise,
    noise_multiplier_for,
    rho_for,
)
from tacit.privacy.event import (
    Composed,
    DiscreteGaussian,
    Event,
    Free,
    Gaussian,
    NotPrivate,
    PoissonSampled,
    Pure,
    Repeated,
    Zcdp,
)
from tacit.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, log_gaussian_delta, mu_of_pure
from tacit.privacy.guarantee import Relation


def parts(event: Event) -> tuple[Event, ...]:
    """What an event is made of, one level down."""
    match event:
        case Composed(events=events):
            return events
        case Repeated(event=inner):
            return (inner,)
    return (event,)


SAMPLED = PoissonSampled(probability=0.02, event=Gaussian(noise_multiplier=1.5))
EVENTS: dict[str, Event] = {
    "free": Free(),
    "pure": Pure(epsilon=0.5),
    "many pure": Repeated(event=Pure(epsilon=0.02), count=400),
    "gaussian": Gaussian(noise_multiplier=4.0),
    "discrete": DiscreteGaussian(noise_multiplier=4.0),
    "zcdp": Zcdp(rho=0.05),
    "sampled": Repeated(event=SAMPLED, count=50),
    "sampled always": PoissonSampled(probability=1.0, event=Gaussian(noise_multiplier=5.0)),
    "pure and gaussian": Composed(events=(Pure(epsilon=0.1), Gaussian(noise_multiplier=4.0))),
    "pure and zcdp": Composed(events=(Pure(epsilon=0.1), Zcdp(rho=0.05))),
    "gaussian and zcdp": Composed(events=(Gaussian(noise_multiplier=9.0), Zcdp(rho=0.05))),
    "sampled and gaussian": Composed(events=(SAMPLED, Gaussian(noise_multiplier=9.0))),
    "sampled and pure": Composed(events=(SAMPLED, Pure(epsilon=0.1))),
    "everything": Composed(events=(SAMPLED, Pure(epsilon=0.1), Gaussian(noise_multiplier=9.0), Zcdp(rho=0.01), Free())),
}
RELATIONS: list[Relation] = ["replace-one", "add-remove"]
KINDS = [pytest.param(name, marks=[pytest.mark.slow] if SAMPLED in parts(EVENTS[name]) else []) for name in EVENTS]


def exact_profile(epsilon: float, mu: float) -> mpmath.mpf:
    e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.2367, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-3, 0.1, 1.0, 5.0, 50.0, 1000.0])
def test_the_profile_is_above_the_true_one_and_close(epsilon: float, mu: float) -> None:
    with mpmath.workdps(120):
        exact = exact_profile(epsilon, mu)
        excess = log_gaussian_delta(epsilon, mu) - mpmath.log(exact)
        assert excess >= 0
        assert gaussian_delta(epsilon, mu) >= exact
        if exact > 1e-28:
            assert excess < 1e-9


def test_known_noise_multipliers() -> None:
    assert 1 / gaussian_mu(1.0, 1e-6) == pytest.approx(4.225, abs=1e-3)
    assert 1 / gaussian_mu(0.1, 1e-6) == pytest.approx(36.3, abs=0.01)
    assert noise_multiplier_for(1.0, 1e-6) == pytest.approx(4.225, abs=1e-3)
    assert 1 / math.sqrt(2 * rho_for(1.0, 1e-6)) == pytest.approx(4.531, abs=1e-3)  # what concentrated privacy asks for


@pytest.mark.parametrize(("epsilon", "delta"), [*itertools.product([0.01, 1.0, 8.0, 80.0], [1e-3, 1e-6, 1e-12])])
def test_epsilon_delta_and_mu_are_inverses_rounded_towards_privacy(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert exact_profile(epsilon, mu) <= delta
    assert exact_profile(epsilon, mu * (1 + 1e-7)) > delta
    assert epsilon * (1 - 1e-7) <= gaussian_epsilon(delta, mu) <= epsilon * (1 + 1e-9)
    assert exact_profile(gaussian_epsilon(delta, mu), mu) <= delta


@pytest.mark.parametrize("epsilon", [1e-10, 0.01, 0.9, 1.1, 5.0, 30.0])
def test_pure_privacy_is_gaussian_privacy_of_mu_of_pure(epsilon: float) -> None:
    mu = mu_of_pure(epsilon)
    with mpmath.workdps(50):
        corner = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        assert mpmath.ncdf(-mpmath.mpf(mu) / 2) <= corner
        assert mpmath.ncdf(-mpmath.mpf(mu) * (1 - 1e-10) / 2) >= corner
    for below in np.linspace(0, epsilon, 7):  # randomised response, the worst pure release, has no larger profile
        profile = -math.expm1(below - epsilon) / (1 + math.exp(-epsilon))
        assert profile <= gaussian_delta(below, mu) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0])
def test_pure_privacy_is_concentrated_privacy(epsilon: float) -> None:
    """Renyi divergences of randomised response, the worst case: none exceeds alpha epsilon tanh(epsilon/2)."""
    rho = mpmath.mpf(epsilon) * mpmath.tanh(mpmath.mpf(epsilon) / 2)
    p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
    with mpmath.workdps(60):
        for alpha in [1.0001, 1.01, 1.1, 1.5, 2, 3, 5, 10, 100]:
            a = mpmath.mpf(alpha)
            divergence = mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
            assert divergence <= a * rho


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "count"), [(0.7, 1), (2.0, 30), (10.0, 1), (10.0, 30)])
def test_gaussians_agree_with_privacy_loss_distributions(noise: float, count: int) -> None:
    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(noise), count))
    ours = epsilon_of(Repeated(event=Gaussian(noise_multiplier=noise), count=count), 1e-6)
    theirs = accountant.get_epsilon(1e-6)  # rounded up by its discretisation
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert ours >= theirs - 1e-3 * theirs - 1e-4


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 5.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-9])
def test_the_conversion_of_zcdp_is_the_best_over_alpha(rho: float, delta: float) -> None:
    grid = 1 + np.logspace(-4, 6, 200_001)
    brute = np.min(rho * grid + np.log1p(-1 / grid) - (math.log(delta) + np.log(grid)) / (grid - 1))
    assert epsilon_of(Zcdp(rho=rho), delta) == pytest.approx(brute, rel=1e-6)
    assert epsilon_of(Zcdp(rho=rho), delta) <= rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke 2016
    assert epsilon_of(Zcdp(rho=rho), delta) >= gaussian_epsilon(delta, math.sqrt(2 * rho))  # a Gaussian is such
    assert rho_for(epsilon_of(Zcdp(rho=rho), delta), delta) == pytest.approx(rho, rel=1e-9)


@pytest.mark.parametrize("noise", [3.0, 20.0])
def test_discrete_gaussians_cover_their_privacy_loss_distribution(noise: float) -> None:
    exact = pld.from_discrete_gaussian_mechanism(sigma=noise, sensitivity=1, value_discretization_interval=1e-4)
    ours = epsilon_of(DiscreteGaussian(noise_multiplier=noise), 1e-6)
    assert exact.get_epsilon_for_delta(1e-6) <= ours <= 1.1 * exact.get_epsilon_for_delta(1e-6)


def test_pure_covers_the_privacy_loss_distribution_of_discrete_laplace() -> None:
    exact = pld.from_discrete_laplace_mechanism(parameter=0.1, sensitivity=1).self_compose(100)
    ours = epsilon_of(Repeated(event=Pure(epsilon=0.1), count=100), 1e-6)
    assert exact.get_epsilon_for_delta(1e-6) <= ours <= 1.3 * exact.get_epsilon_for_delta(1e-6)
    assert ours < 0.7 * 100 * 0.1


@pytest.mark.slow
def test_sampled_gaussians() -> None:
    def event(noise: float) -> Event:
        return Repeated(event=PoissonSampled(probability=0.01, event=Gaussian(noise_multiplier=noise)), count=500)

    assert least_noise(event, 1.0, 1e-6, relation="add-remove", tolerance=1e-3) == pytest.approx(1.251, abs=2e-3)
    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.251)), 500))
    assert epsilon_of(event(1.251), 1e-6, relation="add-remove") == pytest.approx(
        accountant.get_epsilon(1e-6), rel=1e-9
    )


def test_replacing_a_record_in_a_sample_costs_at_most_removing_and_adding_one() -> None:
    event = Repeated(event=PoissonSampled(probability=0.01, event=Gaussian(noise_multiplier=1.251)), count=500)
    replaced = epsilon_of(event, 1e-6, relation="replace-one")
    half = replaced / 2
    assert epsilon_of(event, 1e-6 / (1 + math.exp(half)), relation="add-remove") <= half * (1 + 1e-6)
    assert replaced > epsilon_of(event, 1e-6, relation="add-remove")
    # A term's bound is 1/4 of the noise; replaced, it moves by 2/4. Sampled always, nothing is amplified.
    always = PoissonSampled(probability=1.0, event=Gaussian(noise_multiplier=4.0))
    assert epsilon_of(always, 1e-6) == pytest.approx(epsilon_of(Gaussian(noise_multiplier=2.0), 1e-6), rel=1e-9)
    unsampled = epsilon_of(Gaussian(noise_multiplier=4.0), 1e-6)
    assert epsilon_of(always, 1e-6, relation="add-remove") == pytest.approx(unsampled, rel=1e-9)


def test_a_replaced_record_is_covered_in_one_dimension() -> None:
    """One record in {-1, 1}, sampled with probability q, integrated numerically: the true profile under replace-one."""
    q, noise, delta = 0.2, 2.0, 1e-4
    x = np.linspace(-40, 40, 400_001)

    def density(term: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        bells = [
            np.exp(-((x - centre) ** 2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi)) for centre in (0, term)
        ]
        return (1 - q) * bells[0] + q * bells[1]  # type: ignore[no-any-return]

    epsilon = epsilon_of(PoissonSampled(probability=q, event=Gaussian(noise_multiplier=noise)), delta)
    true = np.clip(density(1.0) - math.exp(epsilon) * density(-1.0), 0, None).sum() * (x[1] - x[0])
    assert true <= delta


# The contract: what every path of accounting must do.


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", KINDS)
def test_epsilon_falls_as_delta_grows(name: str, relation: Relation) -> None:
    costs = [epsilon_of(EVENTS[name], delta, relation=relation) for delta in (0.0, 1e-9, 1e-6, 1e-3)]
    assert costs == sorted(costs, reverse=True)
    assert math.isfinite(costs[1])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", EVENTS)
def test_free_adds_nothing_and_ignorance_costs_everything(name: str, relation: Relation) -> None:
    alone = epsilon_of(EVENTS[name], 1e-6, relation=relation)
    assert epsilon_of(Composed(events=(Free(), EVENTS[name])), 1e-6, relation=relation) == pytest.approx(
        alone, rel=1e-9
    )
    broken = Composed(events=(EVENTS[name], NotPrivate(why="test")))
    assert epsilon_of(broken, 1e-6, relation=relation) == math.inf


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", KINDS)
def test_composition_costs_at_least_each_part(name: str, relation: Relation) -> None:
    event = EVENTS[name]
    alone = epsilon_of(event, 1e-6, relation=relation)
    for other in (Pure(epsilon=0.3), Gaussian(noise_multiplier=6.0), Zcdp(rho=0.02)):
        both = epsilon_of(Composed(events=(event, other)), 1e-6, relation=relation)
        assert both >= max(alone, epsilon_of(other, 1e-6)) * (1 - 1e-9)
    twice = epsilon_of(Repeated(event=event, count=2), 1e-6, relation=relation)
    assert alone * (1 - 1e-9) <= twice
    assert twice == pytest.approx(epsilon_of(Composed(events=(event, event)), 1e-6, relation=relation), rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
def test_more_noise_costs_less(relation: Relation) -> None:
    makers = [
        lambda x: Pure(epsilon=1 / x),
        lambda x: Gaussian(noise_multiplier=x),
        lambda x: DiscreteGaussian(noise_multiplier=x),
        lambda x: PoissonSampled(probability=0.1, event=Gaussian(noise_multiplier=x)),
        lambda x: Composed(events=(Pure(epsilon=0.1), Gaussian(noise_multiplier=x))),
    ]
    for make in makers:
        costs = [epsilon_of(make(x), 1e-5, relation=relation) for x in (0.6, 1.0, 3.0, 8.0)]
        assert costs == sorted(costs, reverse=True)
        assert len(set(costs)) == 4


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-5), (20.0, 1e-9), (0.01, 0.5)])
def test_calibrated_noise_is_enough_and_no_more(epsilon: float, delta: float) -> None:
    noise = noise_multiplier_for(epsilon, delta)
    assert epsilon_of(Gaussian(noise_multiplier=noise), delta) <= epsilon
    assert epsilon_of(Gaussian(noise_multiplier=noise * (1 - 1e-6)), delta) > epsilon


def test_no_promise_needs_no_noise() -> None:
    assert rho_for(math.inf, 1e-6) == math.inf
    assert noise_multiplier_for(math.inf, 1e-6) == 0


def test_a_little_pure_noise_on_top_of_a_gaussian_is_cheap() -> None:
    both = Composed(events=(Gaussian(noise_multiplier=4.2247), Pure(epsilon=0.01)))
    assert epsilon_of(both, 1e-6) < 1.002  # as Gaussian privacy; adding up would say 1.01


def test_guarantees_take_delta_only_if_it_helps() -> None:
    assert guarantee_of(Pure(epsilon=1.0), 1e-6, "party", "replace-one").delta == 0
    many = guarantee_of(EVENTS["many pure"], 1e-6, "record", "add-remove")
    assert (many.delta, many.relation) == (1e-6, "add-remove")
    assert many.epsilon < 8
    assert not guarantee_of(NotPrivate(why="test"), 1e-6, "record", "replace-one").is_private
    assert guarantee_of(Free(), 1e-6, "record", "replace-one").epsilon <= 1e-12


def test_settings_are_checked() -> None:
    with pytest.raises(SettingError, match="delta = 2"):
        epsilon_of(Free(), 2)
    with pytest.raises(SettingError, match="relation = 'swap'"):
        epsilon_of(Free(), 1e-6, relation="swap")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="epsilon = 0"):
        noise_multiplier_for(0, 1e-6)
    with pytest.raises(SettingError, match="delta = 0"):
        noise_multiplier_for(1.0, 0)
    with pytest.raises(SettingError, match="no noise up to"):
        least_noise(lambda x: NotPrivate(why="test"), 1.0, 1e-6)
    with pytest.raises(SettingError, match="must be positive"):
        gaussian_delta(1.0, 0.0)
