"""The coordinator's side of noisy descent: iterates from opened gradients, and how many of them, by a public rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.federation.channel import Channel
from tacit.methods.descent.statistic import Iterate, Plan, party_gradient, party_gradient_and_noise
from tacit.methods.start_check import Evidence
from tacit.models.loss import Loss

Floats = npt.NDArray[np.float64]

_MOMENTUM = 0.9
_ROUNDS = (4, 100)  # the fewest and the most that the rule chooses


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How to descend: public numbers; `l2_mean` is l2 / n. Parties need to know `rounds` alone."""

    rounds: int
    learning_rate: float
    l2_mean: float


class Descent:
    """The coordinator's side: `iterates` from opened sums; `evidence` is what they tell about the start."""

    def __init__(self, plan: Plan, schedule: Schedule, start: Floats) -> None:
        self.plan = plan
        self.schedule = schedule
        self.start = start
        self.evidence: tuple[Evidence, ...] = ()
        self.iterates: list[Floats] = []

    def sound(self, channel: Channel) -> Floats:
        """The mean of the later half of the iterates."""
        theta, velocity, mean = self.start.copy(), np.zeros_like(self.start), np.zeros_like(self.start)
        rounds, rate = self.plan.rounds, self.schedule.learning_rate
        noise = []
        for turn in range(rounds):
            grid = self.plan.grid(theta)
            opened = channel.sum(party_gradient, Iterate(theta=theta))
            n_expected = self._n_sampled * channel.coverage  # in this round
            gradient = grid.from_grid(opened).reshape(theta.shape) / n_expected
            noise.append(grid.noise_std / n_expected)
            if turn == 0:
                first = self._evidence(gradient, noise[0])
            velocity = _MOMENTUM * velocity + gradient + self.schedule.l2_mean * (theta - self.start)
            theta = theta - rate * velocity
            self.iterates.append(theta)
            if turn >= rounds // 2:
                mean += theta / (rounds - rounds // 2)
        weights = mean_weights(rounds)
        way = self._evidence(
            (self.start - mean) / (rate * weights.sum()), float(np.linalg.norm(weights * noise) / weights.sum())
        )
        self.evidence = (first, way)
        return mean

    def paper(self, channel: Channel, clip: float) -> Floats:
        """Algorithm 2 of the document, line by line; the last iterate."""
        theta = self.start.copy()
        for _ in range(self.plan.rounds):
            grid = self.plan.grid(theta)
            opened = channel.sum(party_gradient_and_noise, Iterate(theta=theta))
            gradient, noise = grid.from_grid(opened).reshape(2, *theta.shape)
            gradient = gradient + self.schedule.l2_mean * self.plan.cohort.n_records * (theta - self.start)
            gradient = gradient / max(1.0, float(np.linalg.norm(gradient)) / clip)  # line 4
            theta = theta - self.schedule.learning_rate * (gradient + noise)  # lines 5 and 6
            self.iterates.append(theta)
        return theta

    @property
    def _n_sampled(self) -> float:
        """How many records enter a round, as one expects it."""
        return self.plan.probability * self.plan.cohort.n_weighted

    def _evidence(self, gradient: Floats, noise_std: float) -> Evidence:
        constant, level = self.plan.cohort.constant, None
        if constant and gradient.ndim == 1:
            level = np.zeros_like(gradient)
            level[-1] = 1 / constant
        return Evidence(gradient=gradient, noise_std=noise_std, n_records=self._n_sampled, level=level)


def mean_weights(rounds: int) -> Floats:
    """How many times its length each gradient moves the mean of the later half, where the loss has no curvature.

    With curvature L (1 / rate at most) each moves it less. Its weight on the j-th iterate after it is m^((j-1)/2) U(x),
    U Chebyshev's polynomial of the second kind of degree j - 1 at x = (1 + m - rate L) / (2 sqrt m). Without curvature
    x >= 1, and U is nowhere larger in size between -x and x.
    """
    later = np.arange(rounds // 2, rounds)
    after = later[None, :] - np.arange(rounds)[:, None] + 1  # iterates after each gradient
    weights: Floats = ((1 - _MOMENTUM ** np.maximum(after, 0)) / (1 - _MOMENTUM)).mean(axis=1)
    return weights


def default_schedule(
    loss: Loss, radius: float, n_records: int, mu: float, *, rounds: int | None, is_warm: bool
) -> Schedule:
    """A schedule that balances bias against noise: a rule of public numbers, so it costs nothing.

    Of a constant gradient, T steps of length h with momentum m make t = h sum_{j<=T} (1 - m^j) / (1 - m) times as
    long a way: t is the time of the descent. Where the loss is flat, nothing but t holds the noise in check: it moves
    the model by about S t / (n mu) a coordinate, and with a curvature of trace trH costs N(t) = trH S^2 t^2 / (2 mu^2
    n^2) in mean loss. Where the optimum is at distance a, a time of t leaves a bias of at most a^2 / (2 t). The sum is
    least at t^3 = a^2 mu^2 n^2 / (2 trH S^2). There N(t) may be more than there is to win, B; so t is no longer
    than N(t) = B allows. L and G being the bounds of curvature and norm of a record's gradient, we put trH = L / 2 and
    S^2 = 2 G^2 (S lies between G and 2 G); a = 30 / R and B = 1/4 from the zero model, a = 10 / R and B = 1/50 from a
    public start, which is near the optimum if it is any good. These four were chosen by trials on public data.

    Then T = 2 t (1 - m) L, between 4 and 100; h as t says, or 1 / (L + l2 / n) if that is less; l2 = n / (10 t), which
    keeps the optimum finite and leaves the rest to t, and never below 1, scikit-learn's default.
    """
    L, G = loss.smoothness_bound(radius), loss.gradient_norm_bound(radius)
    distance, to_win = (10 / radius, 1 / 50) if is_warm else (30 / radius, 1 / 4)
    worth = mu**2 * n_records**2 / (2 * L * G**2)
    t = min((distance**2 * worth) ** (1 / 3), 2 * math.sqrt(to_win * worth))
    fewest, most = _ROUNDS
    chosen = math.ceil(min(max(fewest, 2 * t * (1 - _MOMENTUM) * L), most)) if rounds is None else rounds
    way = sum(1 - _MOMENTUM**j for j in range(1, chosen + 1)) / (1 - _MOMENTUM)
    l2_mean = max(1 / n_records, 0.1 / t)
    return Schedule(rounds=chosen, learning_rate=min(1 / (L + l2_mean), t / way), l2_mean=l2_mean)
