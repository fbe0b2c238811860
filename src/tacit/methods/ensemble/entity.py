"""A trusted entity's release: it has seen every party's votes or model, and adds noise to what it makes of them.

Z (N, k) are the public rows, lambda = l2_mean, ||z|| <= R, M parties, c = 1 for two classes and sqrt 2 for more.

Proof (sound). The global classifier W minimises a lambda-strongly convex risk whose gradient depends on the labels A
through T = Z'A/N alone. So lambda ||W - W'|| <= ||T - T'||, and ||W - W'|| <= 2 B with B(lambda) as in
`models.sensitivity`, for a soft label's loss is a mean of hard labels' losses. Replacing a party's whole table moves
the mean votes on a row by 0 or e_a - e_b over M, and majority votes by 0 or e_a - e_b:

    soft    S = min(vote_sensitivity(Z, M) / lambda, 2 B)    at most c R / (M lambda)
    vote    S = min(vote_sensitivity(Z, 1) / lambda, 2 B)    at most c R / lambda
    avg     S = 2 B(l2 / n_max) / M                          the entity projects every model onto the ball of radius B

where the document prints, for R = 1 and two / more classes: 2 / (M lambda), sqrt 2 / (M lambda); 2 / lambda, sqrt 2 /
lambda; 2 c / (M lambda). `vote_sensitivity` is for all classes together; two classes with one vector have it over
sqrt 2. The computed classifier is within _TOLERANCE S of the minimiser, so S is raised by twice that.

If one auxiliary row may be replaced as well (section 4.5 of the document), nothing of Z may be used but R, which the
schema declares: N - 1 terms of the gradient change by c R / M (soft) or c R (vote), over N, and one by at most the
diameter D of a record's gradients, over N. So S = min((N-1)/N c R / (M lambda) + D / (N lambda), 2 B). With D = 2 c R
that is (N + 2 M - 1)/N times c R / (M lambda); the document's factor (N + M - 1)/N goes with its constant 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import NotConverged
from tacit.methods.cohort import Promise
from tacit.methods.ensemble.label import simplex, vote_sensitivity
from tacit.models.problem import Solution
from tacit.models.sensitivity import minimiser_norm_bound, minimiser_sensitivity
from tacit.privacy.accounting import noise_multiplier_for
from tacit.privacy.noise.grid import VectorSum
from tacit.privacy.noise.spherical import spherical_laplace_share
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-3  # the solver's distance from the minimiser, as a share of S


@dataclass(frozen=True, kw_only=True)
class EntityRelease:
    """What the entity needs to know to add noise; all of it public.

    `rows` are Z, and None for "avg", where `l2_mean` is that of the largest party's fit. As a document prints it, the
    sensitivities are the printed ones, times R.
    """

    labels: str
    promise: Promise
    l2_mean: float
    n_parties: int
    n_classes: int
    radius: float
    rows: Floats | None
    protect_auxiliary: bool

    @property
    def norm_bound(self) -> float:
        """B: no minimiser is longer."""
        return minimiser_norm_bound(self.l2_mean, self.radius, self.n_classes)

    @property
    def voters(self) -> int:
        """M, or 1 where a single party may turn every label about."""
        return 1 if self.labels == "vote" else self.n_parties

    @property
    def per_class(self) -> float:
        """c."""
        return 1.0 if self.n_classes == 2 else math.sqrt(2)

    @property
    def sensitivity(self) -> float:
        """S, with the solver's slack, or as printed."""
        if self.promise.is_paper:
            return self._printed
        if self.rows is None:
            return 2 * self.norm_bound / self.n_parties * (1 + 2.0**-40)
        if self.protect_auxiliary:
            n_rows = len(self.rows)
            by_labels = (n_rows - 1) / n_rows * self.per_class * self.radius / self.voters / self.l2_mean
            moved = by_labels + minimiser_sensitivity(n_rows, self.l2_mean, self.radius, self.n_classes)
        else:
            one_vector = math.sqrt(2) if self.n_classes == 2 else 1.0
            moved = vote_sensitivity(self.rows, self.voters) / one_vector / self.l2_mean
        return min(moved, 2 * self.norm_bound) * (1 + 2 * _TOLERANCE)

    @property
    def _printed(self) -> float:
        """Theorems 1 and 3, (53), (60), B.4 and section 4.5 of the document, for rows of norm at most R."""
        lipschitz = 2.0 if self.n_classes == 2 else math.sqrt(2)
        if self.labels == "avg":
            lipschitz = 2 * self.per_class
        printed = lipschitz * self.radius / (self.voters * self.l2_mean)
        if self.protect_auxiliary and self.labels == "soft" and self.rows is not None:
            n_rows = len(self.rows)
            printed *= (n_rows + self.n_parties - 1) / n_rows
        return printed

    def check(self, solution: Solution) -> Floats:
        """The solution's parameter, if it is certified to be near enough to the minimiser."""
        if not self.promise.is_paper and solution.distance_bound > _TOLERANCE * self.sensitivity:
            raise NotConverged("the global fit is not certified to be near its minimiser; choose a larger global_l2")
        return solution.theta

    def average(self, models: list[Floats]) -> Floats:
        """The mean of the parties' models, each projected onto the ball that holds every minimiser."""
        total = np.zeros_like(models[0])
        for theta in models:
            norm = float(np.linalg.norm(theta))
            total += theta if norm <= self.norm_bound else theta * (self.norm_bound / norm)
        return total / len(models)

    def noised(self, theta: Floats, *, rng: Rng) -> Floats:
        """The classifier with the entity's noise; more than two classes in the coordinates in which they sum to 0."""
        if self.promise.is_exact:
            return theta
        if self.promise.is_paper:
            scale = self.sensitivity / self.promise.epsilon
            return theta + spherical_laplace_share(scale, theta.size, 1, rng=rng).reshape(theta.shape)
        E = simplex(self.n_classes)
        reduced = theta if self.n_classes == 2 else E.T @ theta
        release = VectorSum(
            dimension=reduced.size, sensitivity=self.sensitivity, value_bound=self.norm_bound * (1 + _TOLERANCE)
        )
        grid = self.promise.grid(release)
        noised = grid.from_grid(grid.to_grid(reduced.ravel(), rng=rng)).reshape(reduced.shape)
        return noised if self.n_classes == 2 else E @ noised


def default_l2_mean(release: EntityRelease, dimension: int) -> float:
    """A regularisation that balances bias against noise: a rule of public numbers, so it costs nothing.

    As in `averaging.default_l2`, with S <= c R / (m lambda), m = M or 1: the noise costs R^4 c^2 E / (8 m^2 lambda^2)
    in mean loss, E = (dimension + 1) / epsilon^2 or the squared Gaussian noise multiplier, and the penalty of a model
    of margin 4 costs 8 lambda / R^2. The sum is least at lambda^3 = R^6 c^2 E / (32 m^2). Never below 1/N,
    scikit-learn's default, which it is without noise.
    """
    floor = 1 / len(release.rows) if release.rows is not None else 0.0
    promise = release.promise
    if promise.is_exact:
        return floor
    if promise.is_pure:
        expected_square = (dimension + 1) / promise.epsilon**2
    else:
        expected_square = noise_multiplier_for(promise.epsilon, promise.settled_delta) ** 2
    cube = release.radius**6 * release.per_class**2 * expected_square / (32 * release.voters**2)
    return max(floor, float(cube ** (1 / 3)))
