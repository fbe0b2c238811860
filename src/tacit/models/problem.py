"""What to fit, and what a fit found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tacit.errors import SettingError
from tacit.models.loss import Array, Loss
from tacit.models.parameter import coefficients

Intercept = Literal["free", "feature", "none"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What to fit. Public settings only.

    `intercept`: "free" is an unpenalised parameter, "feature" a feature that always equals `constant` and is penalised
    like the others, "none" is none. `tolerance` bounds the distance from the optimum relative to max(1, ||theta||).
    `start` is a first guess of the parameter's shape. `linear` is added to the objective as linear.theta (objective
    perturbation) and needs every parameter penalised. `column_names` are used in messages only.
    """

    n_features: int
    n_classes: int = 2
    l2: float = 0.0
    intercept: Intercept = "free"
    constant: float = 1.0
    tolerance: float = 1e-9
    max_passes: int = 100
    start: Array | None = None
    linear: Array | None = None
    column_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        if not (self.l2 >= 0 and math.isfinite(self.l2)):
            raise SettingError(f"l2 = {self.l2} must be 0 or positive, and finite")
        if self.intercept not in ("free", "feature", "none"):
            raise SettingError(f"intercept = {self.intercept!r} is none of 'free', 'feature', 'none'")
        if self.intercept != "none" and not (self.constant > 0 and math.isfinite(self.constant)):
            raise SettingError(
                f"constant = {self.constant} must be positive and finite; intercept='none' leaves it out"
            )
        if not (self.tolerance > 0 and self.max_passes >= 1):
            raise SettingError(f"tolerance = {self.tolerance} and max_passes = {self.max_passes} must be positive")
        if self.column_names is not None and len(self.column_names) != self.n_features:
            raise SettingError(f"column_names has {len(self.column_names)} entries for {self.n_features} features")
        for name, value in (("start", self.start), ("linear", self.linear)):
            if value is not None and (value.shape != self.loss.shape or not np.isfinite(value).all()):
                raise SettingError(f"{name} has shape {value.shape}; it must be finite and of shape {self.loss.shape}")
        if self.linear is not None and not self.strongly_convex:
            raise SettingError("linear needs every parameter penalised: set l2 > 0 and intercept='feature' or 'none'")

    @property
    def loss(self) -> Loss:
        """The loss without its penalty."""
        constant = 0.0 if self.intercept == "none" else self.constant
        return Loss(n_features=self.n_features, n_classes=self.n_classes, constant=constant)

    @property
    def strongly_convex(self) -> bool:
        """Whether the penalty reaches every parameter."""
        return self.l2 > 0 and self.intercept != "free"

    @property
    def penalty(self) -> Array:
        """The l2 of each parameter, in the parameter's shape."""
        l2 = np.full(self.loss.shape, self.l2)
        if self.intercept == "free":
            l2[..., -1] = 0.0
        return l2

    def column_name(self, column: int) -> str:
        """The name of a parameter's column in messages: as given, or its index."""
        if column == self.n_features:
            return "intercept"
        return self.column_names[column] if self.column_names is not None else str(column)


@dataclass(frozen=True, kw_only=True)
class Solution:
    """An optimum, and how far it may be from the true one.

    Guarantees:
        ||theta - theta*||_2 <= distance_bound, rounding included. For softmax with unpenalised parameters, where adding
        the same to every class changes nothing, theta* is the optimum that sums to zero over the classes.

    `measure` computes the curvature; one of many columns is large, and few who fit look at it.
    """

    problem: Problem
    theta: Array
    gradient_norm: float
    distance_bound: float
    objective: float
    log_likelihood: float
    measure: Callable[[], Array]
    n_records: int
    passes: int

    @cached_property
    def curvature(self) -> Array:
        """The curvature of the objective, penalty included, over theta.ravel()."""
        return self.measure()

    @property
    def coef(self) -> Array:
        """The coefficients in scikit-learn's shape: (1, d), or (C, d) for more than two classes."""
        return self._coefficients[0]

    @property
    def intercept(self) -> Array:
        """The intercepts in scikit-learn's shape, (1,) or (C,): the last parameter times the constant."""
        return self._coefficients[1]

    @property
    def _coefficients(self) -> tuple[Array, Array]:
        return coefficients(self.theta, self.problem.n_features, self.problem.loss.constant)
