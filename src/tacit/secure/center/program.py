"""The programs of the center: nodes run these and nothing else, so this table is what can ever be opened.

    program    reads                            keeps                opens
    invert     curvature                        unsettled, inverse   residual_ok: is |I - A X| below `tolerance`, and X
                                                                     not so large that rounding made it up?
    refine     curvature, unsettled             unsettled, inverse   residual_ok
    step       inverse, gradient                                     step = A^-1 g, g the gradient times `scale`
    variances  inverse                                               diagonal: of C A^-1 C', C as the parties declared
    diagnose   curvature                                             dependent: a bit for each feature
    compare    likelihood, accepted_likelihood                       better: one bit
    accept     likelihood                       accepted_likelihood  nothing
    invert_blocks, refine_blocks, step_blocks: the same as the first three, of many features cut into blocks of 256.
    They read and keep blocks, unsettled_blocks and inverse_blocks, of shape (blocks, 256, 256); features are filled up

A program is a pure function in `jax.numpy`. It says nothing of shares: the engine runs it on them. Numbers have 40
fraction bits; curvature is scaled by a public bound so that its largest eigenvalue is at most 1.

Only `accept` needs no engine: every node gives another name to what it holds. If nodes name different values, those
have different origins, and no program runs that reads them.

Why parties declare the contrasts of `variances`. The inverse X is symmetric and has d (d + 1) / 2 unknowns.
1. A row c of C opens the number c'X c, which is linear in X: it is the inner product of X with c c'.
2. The matrices c c' span all symmetric ones: e_i e_i', and (e_i + e_j)(e_i + e_j)' give every entry. So whoever chooses
   d (d + 1) / 2 rows reads X off, in one program or in several, in one run or in several.
3. Fewer than d (d + 1) / 2 numbers leave a line of symmetric matrices at least that all fit.
4. Standard errors need d rows, the same ones in every run: coefficients in original units, one row for each. Since
   d < d (d + 1) / 2 for d > 1, these leave d (d - 1) / 2 dimensions open. For d = 1 the variance is the inverse.
So a party derives C from the study and binds its digest to the curvature that it seals. A node opens `variances` of an
inverse for that C alone, however often it is asked, and of an inverse for which none was declared, not at all.

Why `inverse` is 0 until it has settled. Every X on the way is a polynomial p(A), and the coordinator knows which. (If A
is halved, X is made of such polynomials of its parts, which tell no less.)
1. From steps at points near 0, where the gradient changes by A times the way, it has p(A) A as a matrix.
2. That has A's eigenvectors, and eigenvalues p(e) e, from which e follows: all of A would be known.
3. Of a settled X that matrix is the identity, up to the residual, which is at most 1e-5.
So what is opened is made of X times the bit `residual_ok`; `refine` goes on from X itself, of which nothing is opened.
With blocks, step 1 gives X A of the whole A, a product for each public way, and that is not the identity: a method that
asks for blocks says so under Revealed, and asks about far fewer points than there are features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tacit import wire
from tacit.errors import CenterError, SettingError
from tacit.secure.ring import Floats
from tacit.wire import Value

if TYPE_CHECKING:
    from jax import Array

_MAGNIFIED = 1024.0  # the residual's entries, before they are squared: their squares keep their digits
_LARGEST_INVERSE = 2.0**30  # its trace: one that is larger inverts what rounding left of a singular matrix
_LARGEST_RESIDUAL = 1e-5  # of an inverse from which anything is opened, whatever tolerance is asked for
_LARGEST_PUBLIC = 2.0**22  # as a party's addend
BLOCK = 256
"""Features in a block, for every run alike: of so many numbers, blocks have one shape."""
WHOLE = 128
"""Features of the largest matrix that is inverted in one piece; a larger one is halved."""

_SETTLED = 1e-6  # an interval from which one plain step reaches the last of 40 bits


@dataclass(frozen=True)
class Whole:
    """A whole number from 1 to `most`."""

    default: int
    most: int


@dataclass(frozen=True, kw_only=True)
class Program:
    """One thing that the nodes can compute.

    Attributes:
        name: its name.
        reads: the kept values that it reads.
        keeps: the values that it leaves with the nodes.
        opens: the values that it opens.
        function: takes the arrays read, in order, then public arguments by name; returns keeps and then opens. None if
            each node for itself keeps what is read under another name: nothing is computed, and nothing opened.
        public: public arguments and their defaults; None if it may be left out.
        fixed: whole numbers that shape the computation itself; each value is compiled anew.
        is_declared: whether it runs only with the public arguments that the parties declared (`contrasts_digest`).
    """

    name: str
    reads: tuple[str, ...]
    keeps: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    function: Callable[..., tuple[Array, ...]] | None = field(repr=False)
    public: Mapping[str, float | None] = field(default_factory=dict)
    fixed: Mapping[str, Whole] = field(default_factory=dict)
    is_declared: bool = False

    def arguments(self, given: Mapping[str, Value]) -> tuple[dict[str, Floats], dict[str, int]]:
        """The public arguments and the fixed numbers, checked, with the defaults of those that are not given.

        Raises:
            CenterError: if the program has no such argument.
            SettingError: if a value is not one that it can take.
        """
        unknown = sorted(set(given) - set(self.public) - set(self.fixed))
        if unknown:
            raise CenterError(f"program {self.name!r} has no public argument {', '.join(unknown)}")
        values = {key: given.get(key, default) for key, default in self.public.items()}
        public = {key: public_value(key, value) for key, value in values.items() if value is not None}
        # Of a list of thresholds or scales each would open a value of its own: once is all.
        lists = [key for key, value in public.items() if value.ndim and self.public[key] is not None]
        if lists:
            raise SettingError(f"public argument {lists[0]} of program {self.name!r} must be one number")
        fixed = {}
        for key, whole in self.fixed.items():
            value = given.get(key, whole.default)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= whole.most:
                raise SettingError(
                    f"public argument {key} of program {self.name!r} must be one of 1, ..., {whole.most}"
                )
            fixed[key] = value
        return public, fixed


def inversion_steps(condition: float) -> list[tuple[float, float]]:
    """The coefficients (b, c) of steps X <- X (b I - c A X) that invert any A with eigenvalues in [1/condition, 1].

    Each step maps an eigenvalue e of A X to f(e) = b e - c e^2. With [l, u] the interval that holds them,
    1 - f = T2((u + l - 2 e) / (u - l)) / T2((u + l) / (u - l)), T2(x) = 2 x^2 - 1, is the quadratic with f(0) = 0 that
    is closest to 1 there (Chebyshev): small eigenvalues grow four times a step, not two as with Newton-Schulz, where
    b = 2 and c = 1. Eigenvalues below 1/condition grow as fast and stay positive.
    """
    low, high = 1.0 / condition, 1.0
    steps = []
    while high - low > _SETTLED:
        width = high - low
        largest = 2 * ((high + low) / width) ** 2 - 1  # T2 at 0
        b, c = 8 * (high + low) / width**2 / largest, 8 / width**2 / largest
        deviation = 1 / largest
        # While the interval is wide its image is scaled to end at 1, so that nothing outgrows the fixed point.
        shrink = 1 + deviation if deviation > 0.3 else 1.0
        steps.append((b / shrink, c / shrink))
        low, high = (1 - deviation) / shrink, (1 + deviation) / shrink
    return [*steps, (2.0, 1.0)]


def _invert(A: Array, *, tolerance: Array, condition_bits: int) -> tuple[Array, Array, Array]:
    return _settled(A, _inverse(A, condition_bits), tolerance)


def _refine(A: Array, X: Array, *, tolerance: Array, condition_bits: int) -> tuple[Array, Array, Array]:
    # A X has eigenvalues in (0, 1]: X inverts a bound on A, or comes from steps that ended before A's smallest ones.
    return _settled(A, _stepped(A, X, inversion_steps(2.0**condition_bits)), tolerance)


def _settled(A: Array, X: Array, tolerance: Array) -> tuple[Array, Array, Array]:
    """X itself; X if it is the inverse, else 0; and which of the two."""
    is_inverse = _is_inverse(A, X, tolerance)
    return X, X * is_inverse, is_inverse


def _step(X: Array, gradient: Array, *, scale: Array) -> tuple[Array]:
    return (X @ (gradient * scale),)


def _step_blocks(X: Array, gradient: Array, *, scale: Array) -> tuple[Array]:
    import jax.numpy as jnp

    n_blocks, size = X.shape[0], X.shape[-1]
    columns = (gradient * scale).reshape(gradient.shape[0], -1)
    filled = jnp.pad(columns, ((0, n_blocks * size - columns.shape[0]), (0, 0)))
    step = (X @ filled.reshape(n_blocks, size, -1)).reshape(n_blocks * size, -1)
    return (step[: columns.shape[0]].reshape(gradient.shape),)


def _variances(X: Array, *, contrast: Array | None = None) -> tuple[Array]:
    import jax.numpy as jnp

    if contrast is None:
        return (jnp.sum(X * _identity(X), axis=1),)
    return (jnp.sum((contrast @ X) * contrast, axis=1),)


def _diagnose(A: Array, *, threshold: Array, condition_bits: int) -> tuple[Array]:
    # With v a unit vector of the null space, (A + h I)^-1 has v v' / h as a part: a feature j with v_j away from 0
    # has a diagonal entry of size v_j^2 / h.
    shifted = A + 2.0**-condition_bits * _identity(A)
    (diagonal,) = _variances(_inverse(shifted, condition_bits))
    return (_bit(diagonal > threshold),)


def _compare(likelihood: Array, accepted: Array, *, tolerance: Array) -> tuple[Array]:
    return (_bit(likelihood >= accepted - tolerance),)


def _inverse(A: Array, condition_bits: int) -> Array:
    if A.ndim == 2 and len(A) > WHOLE:
        return _stepped(A, _inverse_of_halves(A, condition_bits), [(2.0, 1.0)])
    (b, c), *steps = inversion_steps(2.0**condition_bits)
    return _stepped(A, b * _identity(A) - c * A, steps)  # the first step is from X = I


def _inverse_of_halves(A: Array, condition_bits: int) -> Array:
    """The inverse from those of two matrices of half the size: a quarter of the work, and a ninth if halved twice.

    With A = [[P, Q], [Q', R]], W = P^-1 Q and S = R - Q'W, the inverse is [[P^-1 + W S^-1 W', -W S^-1], [.., S^-1]].
    1. P and S have eigenvalues between A's: P is a part of A, and S^-1 is a part of A^-1. So what suffices for A does
       for both, and nothing outgrows the fixed point.
    2. Where steps end early, P and S have inverses that are too small in every direction, and S is then too large. So X
       is the inverse of a matrix that exceeds A: A X has eigenvalues in (0, 1], from which `refine` goes on.
    """
    import jax.numpy as jnp

    if len(A) <= WHOLE:
        return _inverse(A, condition_bits)
    m = len(A) // 2
    Q = A[:m, m:]
    first = _inverse_of_halves(A[:m, :m], condition_bits)
    W = first @ Q
    last = _inverse_of_halves(A[m:, m:] - Q.T @ W, condition_bits)
    V = W @ last
    return jnp.concatenate(
        [jnp.concatenate([first + V @ W.T, -V], axis=1), jnp.concatenate([-V.T, last], axis=1)], axis=0
    )


def _stepped(A: Array, X: Array, steps: Iterable[tuple[float, float]]) -> Array:
    identity = _identity(A)
    for b, c in steps:
        X = X @ (b * identity - c * (A @ X))
    return X


def _is_inverse(A: Array, X: Array, tolerance: Array) -> Array:
    """Whether the Frobenius norm of I - A X, which no entry exceeds, is below the tolerance, and X of an ordinary size.

    Rounding gives a singular A a smallest eigenvalue of about 2^-40, and so, now and then, an inverse of that size.
    """
    import jax.numpy as jnp

    residual = ((_identity(A) - A @ X) * _MAGNIFIED).reshape(-1)
    square = residual @ residual
    bound = jnp.minimum(tolerance, _LARGEST_RESIDUAL) * _MAGNIFIED
    # A sum that has left the range may come out far below 0, and rounding takes one of 0 a little below.
    is_close = jnp.logical_and(square > -bound * bound, square < bound * bound)
    trace = jnp.sum(X * _identity(X))
    return _bit(jnp.logical_and(is_close, trace < _LARGEST_INVERSE))


def _identity(A: Array) -> Array:
    import jax.numpy as jnp

    return jnp.eye(A.shape[-1], dtype=A.dtype)


def _bit(condition: Array) -> Array:
    import jax.numpy as jnp

    return jnp.where(condition, 1.0, 0.0)


PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program(
            name="invert",
            reads=("curvature",),
            keeps=("unsettled", "inverse"),
            opens=("residual_ok",),
            function=_invert,
            public={"tolerance": 1e-6},
            fixed={"condition_bits": Whole(20, most=24)},
        ),
        Program(
            name="refine",
            reads=("curvature", "unsettled"),
            keeps=("unsettled", "inverse"),
            opens=("residual_ok",),
            function=_refine,
            public={"tolerance": 1e-6},
            fixed={"condition_bits": Whole(4, most=24)},
        ),
        Program(name="step", reads=("inverse", "gradient"), opens=("step",), function=_step, public={"scale": 1.0}),
        Program(
            name="invert_blocks",
            reads=("blocks",),
            keeps=("unsettled_blocks", "inverse_blocks"),
            opens=("residual_ok",),
            function=_invert,
            public={"tolerance": 1e-6},
            fixed={"condition_bits": Whole(20, most=24)},
        ),
        Program(
            name="refine_blocks",
            reads=("blocks", "unsettled_blocks"),
            keeps=("unsettled_blocks", "inverse_blocks"),
            opens=("residual_ok",),
            function=_refine,
            public={"tolerance": 1e-6},
            fixed={"condition_bits": Whole(4, most=24)},
        ),
        Program(
            name="step_blocks",
            reads=("inverse_blocks", "gradient"),
            opens=("step",),
            function=_step_blocks,
            public={"scale": 1.0},
        ),
        Program(
            name="variances",
            reads=("inverse",),
            opens=("diagonal",),
            function=_variances,
            public={"contrast": None},
            is_declared=True,
        ),
        Program(
            name="diagnose",
            reads=("curvature",),
            opens=("dependent",),
            function=_diagnose,
            public={"threshold": 4096.0},
            fixed={"condition_bits": Whole(20, most=24)},
        ),
        Program(
            name="compare",
            reads=("likelihood", "accepted_likelihood"),
            opens=("better",),
            function=_compare,
            public={"tolerance": 0.0},
        ),
        Program(name="accept", reads=("likelihood",), keeps=("accepted_likelihood",), function=None),
    )
}


def contrasts_digest(arguments: Mapping[str, Floats]) -> str:
    """How a party declares the public arguments of `variances`: {"contrast": C}."""
    return wire.digest(arguments)


def find_program(name: str) -> Program:
    """The program of that name; a `CenterError` if the center has none."""
    program = PROGRAMS.get(name)
    if program is None:
        raise CenterError(f"the center has no program {name!r}; it has {', '.join(PROGRAMS)}")
    return program


def public_value(name: str, value: object) -> Floats:
    """A public argument as the engine takes it; a `SettingError` if it is not finite or too large for fixed point."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise SettingError(f"public argument {name} must be a number or an array of numbers, not {array.dtype}")
    array = array.astype(np.float64)
    if not np.all(np.isfinite(array)) or np.any(np.abs(array) >= _LARGEST_PUBLIC):
        largest = float(np.max(np.abs(array))) if np.all(np.isfinite(array)) else math.inf
        raise SettingError(f"public argument {name} has an entry of size {largest:g}; the most is {_LARGEST_PUBLIC:g}")
    return array
