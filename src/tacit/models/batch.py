"""Thousands of small penalised fits at once: the same optima as `solver.fit`, and certified like them.

1. Problems of like size are stacked, short ones padded with rows of weight 0.
2. A problem with fewer records m than features only moves in the span of its records. For two classes without a free
   intercept it is solved in the records' own coordinates, theta = X'a. With K = X X', residuals r and their slopes W
   the Newton step is -(l2 + W K)^{-1} (r + l2 a): by Woodbury, (l2 + X'WX)^{-1} X' = X' (l2 + W K)^{-1}.
   Others are rotated: with X X' = U L U', the rows Z = U L^{1/2} have the same inner products, hence the same optimum
   theta = X'U L^{-1/2} beta. That costs an eigenvalue problem each.
3. Damped Newton on all problems of a stack; those that are done drop out.
4. Gradient and distance bound are computed afresh from theta and X. What the stacked arithmetic could not bring within
   the tolerance goes through the single solver, which finishes it or says why it cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from tacit.errors import DataError, SettingError
from tacit.models.diagnosis import explain_missing_class
from tacit.models.loss import Array, Labels
from tacit.models.parameter import coefficients
from tacit.models.problem import Problem
from tacit.models.residual import softmax, subtract_label
from tacit.models.solver import fit

_U = 2.0**-53
_STACK_VALUES = 2**19  # numbers per stack of rows: 4 MB
_LAST_STEP = 1e-7  # a Newton step this small leaves an error of about its square


@dataclass(frozen=True, kw_only=True)
class Solutions:
    """The optima of many problems, along the first axis.

    Guarantees:
        ||theta[p] - theta*[p]||_2 <= distance_bound[p], rounding included.
    """

    problem: Problem
    theta: Array  # (P, k), or (P, C, k) for more than two classes
    gradient_norm: Array  # (P,)
    distance_bound: Array  # (P,)

    @property
    def coef(self) -> Array:
        """The coefficients, (P, d) or (P, C, d)."""
        return self._coefficients[0]

    @property
    def intercept(self) -> Array:
        """The intercepts, (P,) or (P, C): the last parameter times the constant."""
        return self._coefficients[1]

    @property
    def _coefficients(self) -> tuple[Array, Array]:
        return coefficients(self.theta, self.problem.n_features, self.problem.loss.constant)


def fit_many(
    X: Array, y: Labels, offsets: Labels, *, problem: Problem, l2: Array | None = None, finish: bool = True
) -> Solutions:
    """The optimum of each problem p on the rows offsets[p] to offsets[p + 1] of X and y.

    `l2`, of shape (P,), replaces problem.l2 where problems are penalised differently. Every problem must be penalised.
    Without `finish`, what the stacked arithmetic could not bring within the tolerance is left as it is.

    Guarantees:
        Each optimum has a finite distance bound, within the tolerance but for what rounding hides. Without `finish` a
        distance bound may be larger or infinite, and no record makes this fail.
    """
    n_problems = len(offsets) - 1
    l2 = np.full(n_problems, problem.l2) if l2 is None else l2
    records = _Records(X=X, y=y, offsets=offsets, l2=l2)
    records.check(problem)
    theta = np.zeros((n_problems, *problem.loss.shape))
    gradient_norm, distance_bound = np.zeros(n_problems), np.zeros(n_problems)
    for chosen in _stacks(records.sizes, problem):
        stack = _Stack(records, chosen, problem)
        theta[chosen], gradient_norm[chosen], distance_bound[chosen], done = stack.solve()
        for p in chosen[~done] if finish else ():
            one = replace(problem, l2=float(l2[p]), start=theta[p])
            rows = slice(offsets[p], offsets[p + 1])
            solution = fit(lambda rows=rows: [(X[rows], y[rows])], problem=one)  # type: ignore[misc]
            theta[p], gradient_norm[p] = solution.theta, solution.gradient_norm
            distance_bound[p] = solution.distance_bound
    return Solutions(problem=problem, theta=theta, gradient_norm=gradient_norm, distance_bound=distance_bound)


@dataclass(frozen=True, kw_only=True)
class _Records:
    """The rows of all problems, one after the other, and each problem's penalty."""

    X: Array
    y: Labels
    offsets: Labels
    l2: Array

    @property
    def sizes(self) -> Labels:
        return np.diff(self.offsets)

    def check(self, problem: Problem) -> None:
        X, y, d, C = self.X, self.y, problem.n_features, problem.n_classes
        if X.ndim != 2 or X.shape[1] != d or X.dtype != np.float64 or not np.isfinite(X).all():
            raise DataError(f"X has shape {X.shape} and type {X.dtype}; want finite float64 of shape (rows, {d})")
        if y.shape != X.shape[:1] or y.dtype != np.int64 or (len(y) and not (y.min() >= 0 and y.max() < C)):
            raise DataError(f"y must be int64 class indices from 0 to {C - 1}, one for each of the {len(X)} rows")
        n_problems = len(self.offsets) - 1
        if n_problems < 0 or self.offsets[0] != 0 or self.offsets[-1] != len(X) or (self.sizes < 0).any():
            raise DataError(f"offsets must rise from 0 to the number of rows, {len(X)}")
        if self.l2.shape != (n_problems,) or not (np.isfinite(self.l2).all() and (self.l2 > 0).all()):
            raise SettingError(
                f"l2 must be positive and finite for each of {n_problems} problems; for l2=0 use solver.fit"
            )
        if problem.linear is not None or problem.start is not None:
            raise SettingError("problem.linear and problem.start need solver.fit, one problem at a time")
        if problem.intercept == "free":
            counts = np.zeros((n_problems, C), dtype=np.int64)
            np.add.at(counts, (np.repeat(np.arange(n_problems), self.sizes), y), 1)
            if (counts == 0).any():
                raise explain_missing_class(counts[int(np.argmin(counts.min(axis=1)))])


def _stacks(sizes: Labels, problem: Problem) -> Iterator[Labels]:
    """Indices of problems to stack: few enough for the cache, and the largest at most a quarter above the smallest."""
    order = np.argsort(sizes, kind="stable")
    start = 0
    while start < len(order):
        smallest = int(sizes[order[start]])
        widest = smallest + smallest // 4
        width = min(widest, problem.n_features) + 1
        per_problem = max(1, widest * problem.loss.width, (width * problem.n_classes) ** 2)
        stop = int(np.searchsorted(sizes[order], widest, side="right"))
        stop = min(stop, start + max(1, _STACK_VALUES // per_problem))
        yield order[start:stop]
        start = stop


class _Stack:
    """Problems padded to one size. Parameters are (P, c, k) with c = 1 for two classes."""

    def __init__(self, records: _Records, chosen: Labels, problem: Problem) -> None:
        sizes, d = records.sizes[chosen], problem.n_features
        within = np.arange(sizes.max())
        self.problem, self.l2 = problem, records.l2[chosen]
        self.n_scores = 1 if problem.n_classes == 2 else problem.n_classes
        self.weight = (within < sizes[:, None]).astype(np.float64)
        self.y = np.zeros(self.weight.shape, dtype=np.int64)
        self.X = np.zeros((*self.weight.shape, problem.loss.width))
        if len(within):
            rows = np.minimum(records.offsets[chosen, None] + within, len(records.X) - 1)
            self.y[:] = np.where(self.weight > 0, records.y[rows], 0)
            np.multiply(records.X[rows], self.weight[:, :, None], out=self.X[:, :, :d])
        if problem.intercept != "none":
            self.X[:, :, d:] = problem.constant * self.weight[:, :, None]

    def solve(self) -> tuple[Array, Array, Array, Labels]:
        """theta, gradient norms, distance bounds, and which of them are good enough."""
        if self.n_scores == 1 and self.problem.intercept != "free" and self.X.shape[1] < self.X.shape[2]:
            theta = self._in_records()[:, None, :] @ self.X
            norm, bound, done = self._certify(theta)
            return theta[:, 0], norm, bound, done
        penalised = self.X[:, :, : self.problem.n_features] if self.problem.intercept == "free" else self.X
        Z, back = penalised, None
        if penalised.shape[1] < penalised.shape[2]:
            Z, back = _rotate(penalised)
        width = Z.shape[2]
        penalty = np.repeat(self.l2[:, None], width, axis=1)
        if self.problem.intercept == "free":
            Z = np.concatenate([Z, self.X[:, :, -1:]], axis=2)
            penalty = np.concatenate([penalty, np.zeros((len(Z), 1))], axis=1)
        beta = self._newton(Z, penalty)
        theta = beta
        if back is not None:
            coefficients = (beta[:, :, :width] @ back.transpose(0, 2, 1)) @ penalised
            theta = np.concatenate([coefficients, beta[:, :, width:]], axis=2)
        modulus = self._modulus(Z, beta, penalty) if self.problem.intercept == "free" else None
        norm, bound, done = self._certify(theta, modulus)
        return theta.reshape(len(theta), *self.problem.loss.shape), norm, bound, done

    def _in_records(self) -> Array:
        """a, of shape (P, m): damped Newton as below, on theta = X'a of two classes."""
        K = self.X @ self.X.transpose(0, 2, 1)
        sign, weight, l2 = 2.0 * self.y - 1.0, self.weight, self.l2[:, None]
        everything = np.zeros(weight.shape)
        active, a, Ka = np.arange(len(K)), everything, np.zeros(weight.shape)
        value, slope, slopes = _records_loss(Ka, a, sign, weight, l2)
        step, length = _records_step(K, slopes, slope, l2), np.ones(len(K))
        for _ in range(self.problem.max_passes):
            Kstep = (K @ step[:, :, None])[:, :, 0]
            size = np.sqrt(np.maximum(0.0, (step * Kstep).sum(axis=1)))  # of the step in theta
            small = size <= _LAST_STEP * np.maximum(1.0, np.sqrt(np.maximum(0.0, (a * Ka).sum(axis=1))))
            everything[active] = np.where(small[:, None], a + step, a)
            keep = ~small
            if not keep.any():
                break
            if not keep.all():
                active, K, sign, weight, l2 = active[keep], K[keep], sign[keep], weight[keep], l2[keep]
                a, Ka, value, slope, slopes = a[keep], Ka[keep], value[keep], slope[keep], slopes[keep]
                step, Kstep, length = step[keep], Kstep[keep], length[keep]
            trial, Ktrial = a + length[:, None] * step, Ka + length[:, None] * Kstep
            new_value, new_slope, new_slopes = _records_loss(Ktrial, trial, sign, weight, l2)
            descent = (slope * Kstep).sum(axis=1)
            falls = new_value <= value + 1e-4 * length * descent
            taken = falls | (np.abs((new_slope * Kstep).sum(axis=1)) <= 0.5 * np.abs(descent))
            length = np.where(taken, 1.0, 0.5 * length)
            value, at = np.where(taken, new_value, value), taken[:, None]
            a, Ka = np.where(at, trial, a), np.where(at, Ktrial, Ka)
            slope, slopes = np.where(at, new_slope, slope), np.where(at, new_slopes, slopes)
            step = np.where(at, _records_step(K, slopes, slope, l2), step)
        return everything

    def _newton(self, Z: Array, penalty: Array) -> Array:
        """Damped Newton on every problem until its step is tiny, which is still taken."""
        everything = np.zeros((len(Z), self.n_scores, Z.shape[2]))
        active = np.arange(len(Z))
        y, weight = self.y, self.weight
        beta = everything
        value, gradient, H = self._evaluate(Z, y, weight, beta, penalty)
        step = _solve(H, gradient)
        length = np.ones(len(Z))
        for _ in range(self.problem.max_passes):
            scale = np.maximum(1.0, np.linalg.norm(beta, axis=(1, 2)))
            small = np.linalg.norm(step, axis=(1, 2)) <= _LAST_STEP * scale
            everything[active] = np.where(small[:, None, None], beta + step, beta)
            keep = ~small
            if not keep.any():
                break
            active, Z, y, weight, penalty = active[keep], Z[keep], y[keep], weight[keep], penalty[keep]
            beta, value, gradient, step, length = beta[keep], value[keep], gradient[keep], step[keep], length[keep]
            trial = beta + length[:, None, None] * step
            new_value, new_gradient, H = self._evaluate(Z, y, weight, trial, penalty)
            slope = (gradient * step).sum(axis=(1, 2))
            falls = new_value <= value + 1e-4 * length * slope
            levels = np.abs((new_gradient * step).sum(axis=(1, 2))) <= 0.5 * np.abs(slope)
            taken = falls | levels
            length = np.where(taken, 1.0, 0.5 * length)
            value = np.where(taken, new_value, value)
            at = taken[:, None, None]
            beta, gradient = np.where(at, trial, beta), np.where(at, new_gradient, gradient)
            step[taken] = _solve(H[taken], new_gradient[taken])
        return everything

    def _evaluate(self, Z: Array, y: Labels, weight: Array, beta: Array, penalty: Array) -> tuple[Array, Array, Array]:
        """Value, gradient and (definite) curvature of every problem's objective."""
        loss, residual, pairs = self._residuals(Z, y, weight, beta)
        l2 = penalty[:, None, :]
        value = loss + 0.5 * (l2 * beta**2).sum(axis=(1, 2))
        gradient = residual @ Z + l2 * beta
        n, c, k = beta.shape
        H = np.zeros((n, c * k, c * k))
        for a, b, curvature in pairs:
            gram = (Z * curvature[:, :, None]).transpose(0, 2, 1) @ Z
            rows_a, rows_b = slice(a * k, (a + 1) * k), slice(b * k, (b + 1) * k)
            H[:, rows_a, rows_a] += gram
            if a != b:
                H[:, rows_b, rows_b] += gram
                H[:, rows_a, rows_b] -= gram
                H[:, rows_b, rows_a] -= gram
        diagonal = np.arange(c * k)
        H[:, diagonal, diagonal] += np.tile(penalty, c)
        if c > 1:  # The optimum sums to zero over the classes: see solver. The search never leaves that space.
            for j in range(k):
                rows = slice(j, c * k, k)
                raise_by = H[:, diagonal, diagonal][:, rows].max(axis=1) / c
                H[:, rows, rows] += raise_by[:, None, None]
        return value, gradient, H

    def _residuals(
        self, Z: Array, y: Labels, weight: Array, beta: Array
    ) -> tuple[Array, Array, list[tuple[int, int, Array]]]:
        """Loss (P,), residuals (P, c, m), and the curvatures (P, m) of pairs of classes; see `loss` for the forms."""
        scores = Z @ beta.transpose(0, 2, 1)
        if self.n_scores == 1:
            sign = 2.0 * y - 1.0
            margin = sign * scores[:, :, 0]
            wrong = weight * expit(-margin)
            loss = (weight * np.logaddexp(0.0, -margin)).sum(axis=1)
            return loss, (-sign * wrong)[:, None, :], [(0, 0, wrong * expit(margin))]
        record_loss, P = softmax(scores, y)
        pairs = [(a, b, weight * P[:, :, a] * P[:, :, b]) for a in range(self.n_scores) for b in range(a)]
        residual = (weight[:, :, None] * subtract_label(P, y)).transpose(0, 2, 1)
        return (weight * record_loss).sum(axis=1), residual, pairs

    def _certify(self, theta: Array, modulus: Array | None = None) -> tuple[Array, Array, Labels]:
        """Gradient norms and distance bounds at theta, from X itself (the proofs stand in `certificate`).

        `modulus` is the least curvature, where an intercept is free of the penalty.
        """
        _, residual, _ = self._residuals(self.X, self.y, self.weight, theta)
        l2 = np.repeat(self.l2[:, None], self.X.shape[2], axis=1)
        if self.problem.intercept == "free":
            l2[:, -1] = 0.0
        pull = l2[:, None, :] * theta
        norm = np.linalg.norm(residual @ self.X + pull, axis=(1, 2))
        length = np.linalg.norm(theta, axis=(1, 2))
        radius = np.linalg.norm(self.X, axis=2).max(axis=1, initial=0.0)
        m, k = self.X.shape[1:]
        relative = np.expm1(6 * (k + 3) * _U * radius * length) + (32 + 2 * self.problem.n_classes) * _U
        rounding = ((m + 3) * _U + 2 * relative) * np.abs(residual).sum(axis=(1, 2)) * radius
        rounding += 4 * _U * (norm + np.linalg.norm(pull, axis=(1, 2)))
        if modulus is not None:
            reach = radius * (1.0 if self.n_scores == 1 else math.sqrt(2))
            computed, bound = (_distance(g, modulus, reach) for g in (norm, norm + rounding))
        else:
            computed, bound = norm / self.l2, (norm + rounding) / self.l2
        within = (computed <= self.problem.tolerance * np.maximum(1.0, length)) | (norm <= rounding)
        return norm, bound + 4 * _U * length, within & np.isfinite(bound)

    def _modulus(self, Z: Array, beta: Array, penalty: Array) -> Array:
        """The least curvature; directions that the rotation left out have curvature l2."""
        _, _, H = self._evaluate(Z, self.y, self.weight, beta, penalty)
        error = 16 * _U * sum(self.X.shape[1:]) * np.trace(H, axis1=1, axis2=2)
        return np.asarray(np.minimum(np.linalg.eigvalsh(H)[:, 0], self.l2) - error)


def _records_loss(scores: Array, a: Array, sign: Array, weight: Array, l2: Array) -> tuple[Array, Array, Array]:
    """The objective (P,), its slope r + l2 a and the slopes W of the residuals, both (P, m)."""
    margin = sign * scores
    wrong = weight * expit(-margin)
    value = (weight * np.logaddexp(0.0, -margin) + 0.5 * l2 * a * scores).sum(axis=1)
    return value, l2 * a - sign * wrong, wrong * expit(margin)


def _records_step(K: Array, slopes: Array, slope: Array, l2: Array) -> Array:
    """-(l2 + W K)^{-1} (r + l2 a): singular by rounding alone, since W K has no negative eigenvalue."""
    A = slopes[:, :, None] * K
    diagonal = np.arange(K.shape[1])
    A[:, diagonal, diagonal] += l2
    return _solve(A, slope)


def _rotate(X: Array) -> tuple[Array, Array]:
    """Z (P, m, m) with Z Z' = X X', and the maps B with theta = X'B beta."""
    eigenvalues, U = np.linalg.eigh(X @ X.transpose(0, 2, 1))
    floor = 1e-14 * eigenvalues[:, -1:]
    root = np.sqrt(np.where(eigenvalues > floor, eigenvalues, 0.0))
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    return U * root[:, None, :], U * inverse[:, None, :]


def _solve(H: Array, gradient: Array) -> Array:
    """The Newton steps -H^{-1} g."""
    flat = -gradient.reshape(*H.shape[:2], 1)
    try:
        step = np.linalg.solve(H, flat)
    except np.linalg.LinAlgError:  # one problem's curvature has underflown: any downhill step will do, see _certify
        ridge = 1e-8 * (1 + np.trace(H, axis1=1, axis2=2))
        step = np.linalg.solve(H + ridge[:, None, None] * np.eye(H.shape[1]), flat)
    return step.reshape(gradient.shape)


def _distance(gradient_norm: Array, modulus: Array, reach: Array) -> Array:
    """-ln(1 - q) / reach with q = reach ||g|| / modulus: `certificate` with nu <= ||g|| / sqrt(modulus)."""
    safe = np.maximum(modulus, np.finfo(np.float64).tiny)
    q = np.where(modulus > 0, reach * gradient_norm / safe, np.inf)
    bound = -np.log1p(-np.minimum(q, 0.5)) / np.where(reach > 0, reach, 1.0) * (1 + 8 * _U)
    return np.where(q <= 0.5, np.maximum(bound, gradient_norm / safe), np.inf)
