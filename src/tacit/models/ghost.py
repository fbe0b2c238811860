"""Sums of clipped gradients of a stack of linear layers, without the gradient of any single record.

The gradient of one record's loss in a layer z = W a + b is the outer product of the error e = dloss/dz and the input a,
so its squared norm is ||e||^2 (||a||^2 + 1): known before it is formed ("ghost clipping"; Goodfellow 2015; Li et al.
2022). Each error is scaled down by its record's clipping factor, and one matrix product gives the sum over the batch.

`clipped_sum` does this in fixed point, so that its sensitivity is a fact and not an approximation; floats would let the
rounding of one record's gradient depend on who else is in the batch (Casacuberta et al. 2022).

Claim. `clipped_sum` over a batch is exactly the sum, over its records, of an integer vector that depends on the record
and the weights alone and whose norm (L2 or largest entry, as `clip` says) is at most clip.bound / clip.unit.

Proof. (1) Inputs a, weights and errors e are rounded to integers of public steps, which are powers of two, and cut off
at 2**18 (inputs) and 2**20 (errors). The weights' step is such that every matrix product below is a sum of integer
terms whose absolute values add up to less than 2**53: float64 adds such terms without rounding, in whatever order and
however a library blocks them. (2) Everything else is done to each number by itself by +, -, *, /, sqrt, rint, trunc,
ldexp, which IEEE 754 rounds in one way, or is the largest of some numbers, or a sum of integers as in (1). Softmax and
tanh come from `_exp`, made of these. So a record's a, e and clipping factor are functions of it and the weights alone.
(3) The factor c is at most bound (1 - 2**-40) / ||gradient||, the norm being that of the rounded a and e; it errs by
less than 2**-45. D = trunc(c e / step) is no longer than c e / step (1 + 2**-50). The record's vector is a D for the
weights and D / (step of a) for the bias, so its norm is at most bound / unit. (4) No entry of it exceeds 2**42, so
2,048 of them add up to no more than 2**53 in the last product; batches are added in int64. With the largest-entry norm
each product a e is cut off by itself, and (4) holds for 64 records at a time. QED
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import SettingError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Activation = Literal["relu", "tanh"]

LARGEST_BATCH = 1 << 20  # records: their integers still add up to less than 2**62
WIDEST = 1 << 13  # of a layer: squares of its integers still add up to less than 2**53

_INPUT_BITS = 18
_ERROR_BITS = 20
_BOUND_BITS = 42  # bound / unit is below 2**42
_ROWS = 2048  # of one exact product
_ROWS_BY_ENTRY = 64
_SAFE = 1 - 2.0**-40
_EXP_BITS = 40


@dataclass(frozen=True, kw_only=True)
class Clip:
    """How far one record's gradient may reach: its L2 norm, or its largest entry, is cut to `bound`."""

    bound: float
    norm: Literal["l2", "largest"] = "l2"

    def __post_init__(self) -> None:
        if not 2.0**-60 <= self.bound <= 2.0**60:
            raise SettingError(f"clip = {self.bound!r} must be positive, finite and of ordinary size; 1 is usual")

    @property
    def unit(self) -> float:
        """What an integer of an exact sum stands for: a power of two, with bound / unit between 2**41 and 2**42."""
        return math.ldexp(1.0, math.floor(math.log2(self.bound)) - _BOUND_BITS + 1)


@dataclass(frozen=True)
class Layer:
    """One linear layer: z = W a + b, W of shape (n_out, n_in)."""

    W: Floats
    b: Floats


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Linear layers with an activation between them; softmax cross-entropy follows the last.

    `input_bound` is a public bound on the norm of a row; what exceeds it is cut off, entry by entry.
    """

    layers: Sequence[Layer]
    activation: Activation
    input_bound: float

    def scores(self, X: Floats) -> Floats:
        """The last layer's outputs, of shape (n, n_classes)."""
        a = X
        for i, layer in enumerate(self.layers):
            z = a @ layer.W.T + layer.b
            a = z if i == len(self.layers) - 1 else _activate(z, self.activation)[0]
        return a

    def clipped_sum(self, X: Floats, y: Ints, clip: Clip) -> Ints:
        """The sum of the clipped gradients in units of `clip.unit`, layer by layer: W row by row, then b.

        Guarantees:
            Adding a record adds a vector that depends on it and the weights alone, exactly, of norm at most clip.bound.
        """
        fixed = _FixedPoint(self, clip)
        total = np.zeros(sum(layer.W.size + layer.b.size for layer in self.layers), dtype=np.int64)
        rows = _ROWS if clip.norm == "l2" else _ROWS_BY_ENTRY
        for start in range(0, len(X), rows):
            total += fixed.sum(X[start : start + rows], y[start : start + rows])
        return total

    def float_sum(self, X: Floats, y: Ints, clip: Clip) -> Floats:
        """The same in floating point: nearer to the real numbers, but with no proof of sensitivity."""
        total = np.zeros(sum(layer.W.size + layer.b.size for layer in self.layers))
        rows = _ROWS if clip.norm == "l2" else _ROWS_BY_ENTRY
        for start in range(0, len(X), rows):
            inputs, errors = _back_propagate(self, X[start : start + rows], y[start : start + rows])
            if clip.norm == "largest":
                total += _flat([_entry_sum(a, e, clip.bound) for a, e in zip(inputs, errors, strict=True)])
                continue
            squares = [_squares(e) * (_squares(a) + 1) for a, e in zip(inputs, errors, strict=True)]
            factor = clip.bound / np.maximum(np.sqrt(np.sum(squares, axis=0)), clip.bound)
            scaled = [e * factor[:, None] for e in errors]
            total += _flat([(e.T @ a, e.sum(axis=0)) for a, e in zip(inputs, scaled, strict=True)])
        return total


class _FixedPoint:
    """The steps of all integers, and the integer weights: public, made once for a batch."""

    def __init__(self, stack: Stack, clip: Clip) -> None:
        self.stack, self.clip = stack, clip
        self.weights: list[Floats] = []
        self.weight_steps: list[float] = []
        self.input_steps: list[float] = []
        norm = largest = stack.input_bound
        for layer in stack.layers:
            magnitude = np.abs(layer.W)
            reach = max(
                math.ldexp(float(magnitude.sum(axis=1).max()), _INPUT_BITS),
                math.ldexp(float(magnitude.sum(axis=0).max()), _ERROR_BITS),
            )
            step = _power_of_two_above(reach * 2.0**-51)
            self.weight_steps.append(step)
            self.weights.append(np.rint(layer.W / step))
            # At most 1, so that the bias's integers are multiples of the weights'.
            self.input_steps.append(min(1.0, _power_of_two_above(largest * 2.0**-_INPUT_BITS)))
            if stack.activation == "tanh":
                norm, largest = math.sqrt(len(layer.b)), 1.0
            else:
                largest = float((np.linalg.norm(layer.W, axis=1) * norm + np.abs(layer.b)).max())
                norm = float(np.linalg.norm(layer.W)) * norm + float(np.linalg.norm(layer.b))
        self.error_steps = self._error_steps()

    def _error_steps(self) -> list[float]:
        steps, norm, largest = [], math.sqrt(2.0), 1.0  # softmax: ||p - e_y|| <= sqrt(2)
        for layer in reversed(self.stack.layers):
            steps.append(_power_of_two_above(largest * 2.0**-_ERROR_BITS))
            largest = float(np.linalg.norm(layer.W, axis=0).max()) * norm
            norm *= float(np.linalg.norm(layer.W))
        return steps[::-1]

    def sum(self, X: Floats, y: Ints) -> Ints:
        inputs, slopes = [_to_grid(X, self.input_steps[0], _INPUT_BITS)], []
        for i, layer in enumerate(self.stack.layers):
            product = inputs[-1] @ self.weights[i].T
            z = product * (self.input_steps[i] * self.weight_steps[i]) + layer.b
            if i < len(self.stack.layers) - 1:
                a, slope = _activate(z, self.stack.activation)
                inputs.append(_to_grid(a, self.input_steps[i + 1], _INPUT_BITS))
                slopes.append(slope)
        errors = [_to_grid(_softmax_error(z, y), self.error_steps[-1], _ERROR_BITS)]
        for i in range(len(self.stack.layers) - 1, 0, -1):
            e = errors[-1] @ self.weights[i] * (self.error_steps[i] * self.weight_steps[i]) * slopes[i - 1]
            errors.append(_to_grid(e, self.error_steps[i - 1], _ERROR_BITS))
        parts = self._cut(inputs, errors[::-1])
        return _flat(parts).astype(np.int64)

    def _cut(self, inputs: list[Floats], errors: list[Floats]) -> list[tuple[Floats, Floats]]:
        unit, steps = self.clip.unit, list(zip(self.input_steps, self.error_steps, strict=True))
        pairs = list(zip(inputs, errors, strict=True))
        if self.clip.norm == "largest":
            bound = self.clip.bound / unit
            return [
                _entry_sum(a, e, bound, weight=s * t / unit, bias=t / unit)
                for (a, e), (s, t) in zip(pairs, steps, strict=True)
            ]
        squares = np.zeros(len(inputs[0]))
        for (a, e), (s, t) in zip(pairs, steps, strict=True):
            squares = squares + (_squares(a) * s**2 + 1) * (_squares(e) * t**2)
        factor = self.clip.bound * _SAFE / np.maximum(np.sqrt(squares), self.clip.bound)
        parts = []
        for (a, e), (s, t) in zip(pairs, steps, strict=True):
            D = np.trunc(e * factor[:, None] * (t * s / unit))
            parts.append((D.T @ a, D.sum(axis=0) / s))
        return parts


def _back_propagate(stack: Stack, X: Floats, y: Ints) -> tuple[list[Floats], list[Floats]]:
    """Each layer's input and error, in floating point."""
    inputs, slopes = [X], []
    for layer in stack.layers[:-1]:
        a, slope = _activate(inputs[-1] @ layer.W.T + layer.b, stack.activation)
        inputs.append(a)
        slopes.append(slope)
    last = stack.layers[-1]
    errors = [_softmax_error(inputs[-1] @ last.W.T + last.b, y)]
    for i in range(len(stack.layers) - 1, 0, -1):
        errors.append(errors[-1] @ stack.layers[i].W * slopes[i - 1])
    return inputs, errors[::-1]


def _entry_sum(a: Floats, e: Floats, bound: float, weight: float = 0.0, bias: float = 0.0) -> tuple[Floats, Floats]:
    """The sum of outer products, each entry cut to the bound; with factors, each one truncated to an integer."""
    W = a[:, None, :] * e[:, :, None]
    if weight:
        W, e = np.trunc(np.clip(W * weight, -bound, bound)), np.trunc(np.clip(e * bias, -bound, bound))
        return W.sum(axis=0), e.sum(axis=0)
    return np.clip(W, -bound, bound).sum(axis=0), np.clip(e, -bound, bound).sum(axis=0)


def _activate(z: Floats, activation: Activation) -> tuple[Floats, Floats]:
    """The activation and its slope."""
    if activation == "relu":
        slope = (z > 0).astype(np.float64)
        return z * slope, slope
    t = _exp(-2.0 * np.abs(z))
    a = np.copysign((1 - t) / (1 + t), z)
    return a, 1 - a * a


def _softmax_error(z: Floats, y: Ints) -> Floats:
    """softmax(z) - onehot(y); whole multiples of 2**-40 are added up, so that the order does not matter."""
    weights = np.rint(np.ldexp(_exp(z - z.max(axis=1, keepdims=True)), _EXP_BITS))
    error: Floats = weights / weights.sum(axis=1, keepdims=True)
    error[np.arange(len(y)), y] -= 1.0
    return error


_LN2_HIGH = math.ldexp(2977044472, -32)  # log 2 to 32 digits: its product with a small integer is exact
_LN2_LOW = -4.2009150726810846e-11  # log 2 - _LN2_HIGH
_TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))


def _exp(x: Floats) -> Floats:
    """exp of numbers at most 0, from operations that IEEE 754 defines: the same bits wherever a number stands."""
    x = np.maximum(x, -80.0)
    k = np.rint(x * (1 / math.log(2)))
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = np.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        p = p * r + coefficient
    scaled: Floats = np.ldexp(p, k.astype(np.int64))
    return scaled


def _to_grid(values: Floats, step: float, bits: int) -> Floats:
    """Integers of that step, cut off at 2**bits."""
    integers: Floats = np.clip(np.rint(values / step), -(2.0**bits), 2.0**bits)
    return integers


def _squares(rows: Floats) -> Floats:
    squares: Floats = np.einsum("ij,ij->i", rows, rows)
    return squares


def _flat(parts: list[tuple[Floats, Floats]]) -> Floats:
    return np.concatenate([piece.ravel() for part in parts for piece in part])


def _power_of_two_above(value: float) -> float:
    """The least power of two that is no less; 2**-300 for 0."""
    return math.ldexp(1.0, math.ceil(math.log2(max(value, 2.0**-300))))
