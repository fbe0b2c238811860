"""Networks as a federation trains them: a flat vector of public weights, and a description that both sides know.

    Perceptron    linear layers with an activation between them; numpy alone, clipped in fixed point (`ghost`)
    TorchNetwork  any torch.nn.Module that is registered under a name at every party; per-example gradients by
                  torch.func.vmap

Code never travels: a module's name does. PyTorch is imported when a registered module is first used, and not before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.errors import SettingError
from tacit.models.ghost import WIDEST, Activation, Clip, Layer, Stack
from tacit.rand import Rng

if TYPE_CHECKING:
    from torch import Tensor, nn

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Factory = Callable[[int, int], "nn.Module"]

MOST_LAYERS = 8
LARGEST_WEIGHT = 2.0**20  # beyond it a network has diverged, and no product of norms may overflow

_ROWS = 256  # of one vmap call; always this many, so that it always runs the same kernels
_SQUARES = 4096  # added up in single precision

Pieces = list[tuple[int, "Tensor"]]
Add = Callable[[Pieces, Floats], None]


class Network(Protocol):
    """What a method needs of a network: scores, and sums of clipped gradients."""

    @property
    def n_parameters(self) -> int:
        """How many weights there are."""
        ...

    def initial(self, seed: int) -> Floats:
        """Weights to start from; public, so the seed is no secret."""
        ...

    def scores(self, weights: Floats, X: Floats) -> Floats:
        """One score for each class, of shape (n, n_classes)."""
        ...

    def clipped_sum(self, weights: Floats, X: Floats, y: Ints, clip: Clip) -> Ints:
        """The sum over records of the clipped gradients of the cross-entropy, in units of `clip.unit`."""
        ...

    def float_sum(self, weights: Floats, X: Floats, y: Ints, clip: Clip) -> Floats:
        """The same in floating point, for fits that promise nothing."""
        ...


@dataclass(frozen=True, kw_only=True)
class Perceptron:
    """A multilayer perceptron; no hidden layer makes it a softmax regression.

    Attributes:
        n_features: columns of a row.
        n_classes: outputs.
        hidden: the widths of the hidden layers.
        activation: "relu" or "tanh".
        input_bound: a public bound on the norm of a row.
    """

    n_features: int
    n_classes: int
    hidden: tuple[int, ...] = (50, 20)
    activation: Activation = "relu"
    input_bound: float = 1.0

    def __post_init__(self) -> None:
        check_hidden(self.hidden)
        if not (self.n_features <= WIDEST and 2 <= self.n_classes <= WIDEST):
            raise SettingError(
                f"a network of {self.n_features} columns and {self.n_classes} classes is too wide; {WIDEST} is the most"
            )
        if not 2.0**-100 <= self.input_bound <= 2.0**100:
            raise SettingError(f"input_bound = {self.input_bound!r} must be positive and of ordinary size")

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(n_out, n_in) of each layer."""
        widths = (self.n_features, *self.hidden, self.n_classes)
        return tuple((n_out, n_in) for n_in, n_out in pairwise(widths))

    @property
    def n_parameters(self) -> int:
        """How many weights there are, biases included."""
        return sum(n_out * (n_in + 1) for n_out, n_in in self.shapes)

    def stack(self, weights: Floats) -> Stack:
        """The layers that a flat vector holds: W row by row, then b, layer by layer."""
        layers, at = [], 0
        for n_out, n_in in self.shapes:
            W = weights[at : at + n_out * n_in].reshape(n_out, n_in)
            at += n_out * n_in
            layers.append(Layer(W, weights[at : at + n_out]))
            at += n_out
        return Stack(layers=layers, activation=self.activation, input_bound=self.input_bound)

    def initial(self, seed: int) -> Floats:
        """Uniform weights and no biases, so that a row of the bound's norm gives outputs of size 1.

        Var z = Var(W) ||a||^2: of the first layer ||a|| is `input_bound`, whatever the number of columns; further on
        the n_in inputs have a mean square of about 1. ReLU halves it, which a variance of 2 makes up for (He 2015).
        """
        generator = Rng.seeded(seed).generator()
        pieces = []
        for i, (n_out, n_in) in enumerate(self.shapes):
            last = i == len(self.shapes) - 1
            gain = 2.0 if self.activation == "relu" and not last else 1.0
            std = math.sqrt(gain) / (self.input_bound if i == 0 else math.sqrt(n_in))
            pieces += [generator.uniform(-1, 1, n_out * n_in) * (std * math.sqrt(3)), np.zeros(n_out)]
        return np.concatenate(pieces)

    def scores(self, weights: Floats, X: Floats) -> Floats:
        """One score for each class, of shape (n, n_classes)."""
        return self.stack(weights).scores(X)

    def clipped_sum(self, weights: Floats, X: Floats, y: Ints, clip: Clip) -> Ints:
        """The sum of the clipped gradients, exactly, in units of `clip.unit`; see `Stack.clipped_sum`."""
        return self.stack(weights).clipped_sum(X, y, clip)

    def float_sum(self, weights: Floats, X: Floats, y: Ints, clip: Clip) -> Floats:
        """The same in floating point, for fits that promise nothing."""
        return self.stack(weights).float_sum(X, y, clip)


@dataclass(frozen=True, kw_only=True)
class TorchNetwork:
    """A registered torch.nn.Module, in evaluation mode (dropout is off, nothing is tracked).

    A record whose gradient is not finite in single precision counts as 0: an error would tell that it is there.
    """

    name: str
    n_features: int
    n_classes: int

    @cached_property
    def single(self) -> nn.Module:
        """The module that this side has registered under the name, in single precision."""
        _torch()
        return _find_module(self.name)(self.n_features, self.n_classes).float().eval()

    @cached_property
    def double(self) -> nn.Module:
        """The same in double precision."""
        _torch()
        return _find_module(self.name)(self.n_features, self.n_classes).double().eval()

    @cached_property
    def n_parameters(self) -> int:
        """How many weights there are."""
        return sum(parameter.numel() for parameter in self.single.parameters())

    def initial(self, seed: int) -> Floats:
        """The module's own initial weights, from this public seed."""
        torch = _torch()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = _find_module(self.name)(self.n_features, self.n_classes).double()
        return np.concatenate([parameter.detach().numpy().ravel() for parameter in made.parameters()])

    def scores(self, weights: Floats, X: Floats) -> Floats:
        """One score for each class, of shape (n, n_classes)."""
        torch = _torch()
        named = _named(self.double, weights)
        with torch.no_grad():
            scores: Floats = torch.func.functional_call(self.double, named, (torch.from_numpy(X.copy()),)).numpy()
        return scores

    def clipped_sum(self, weights: Floats, X: Floats, y: Ints, clip: Clip) -> Ints:
        """The sum of the clipped gradients, each rounded to integers before they are added.

        Guarantees:
            It is a sum of integer vectors, one for each record, of norm at most clip.bound / clip.unit. That each
            depends on its record alone holds up to the rounding of PyTorch's kernels: see docs/limits.md.

        Proof. A gradient g is scaled by f to the norm B = (bound - sqrt(d) u) (1 - 2**-11), where the last factor
        covers the rounding of a norm that is added up over 4,096 squares at a time. u is a power of two and K = 1.5
        2**23 u, so K + f g lies where single precision has steps of u: it is K + a multiple of u, at most u from f g
        in each of d entries. float64 adds up 2**20 of them exactly.
        """
        step = _single_step(clip)
        reach = replace(clip, bound=(clip.bound - math.sqrt(self.n_parameters) * step) * (1 - 2.0**-11))

        def add(pieces: Pieces, total: Floats) -> None:
            torch, offset = _torch(), 1.5 * 2.0**23 * step
            start, factor = torch.tensor(offset), _factor(pieces, reach)
            for at, piece in pieces:
                torch.addcmul(start, piece, factor[:, None], out=piece)
                total[at : at + piece.shape[1]] += piece.numpy().sum(axis=0, dtype=np.float64) - len(piece) * offset

        total = self._sum(self.single, weights, X, y, add)
        return np.ldexp(total / step, round(math.log2(step / clip.unit))).astype(np.int64)

    def float_sum(self, weights: Floats, X: Floats, y: Ints, clip: Clip) -> Floats:
        """The same in double precision, for fits that promise nothing."""

        def add(pieces: Pieces, total: Floats) -> None:
            factor = _factor(pieces, clip)
            for at, piece in pieces:
                total[at : at + piece.shape[1]] += (piece * factor[:, None]).sum(dim=0).numpy()

        return self._sum(self.double, weights, X, y, add)

    def _sum(self, module: nn.Module, weights: Floats, X: Floats, y: Ints, add: Add) -> Floats:
        """What `add` makes of the gradients of some records after the other.

        It is handed, for each parameter, where it begins and one row of its gradient a record; they are let go before
        the next ones are made, so that memory is used again.
        """
        torch = _torch()
        named = _named(module, weights)
        dtype = next(iter(named.values())).dtype

        def loss(named: Any, row: Any, label: Any) -> Any:
            scores = torch.func.functional_call(module, named, (row.unsqueeze(0),))
            return torch.nn.functional.cross_entropy(scores, label.unsqueeze(0))

        gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

        def pieces(start: int) -> Pieces:
            rows, labels = np.zeros((_ROWS, X.shape[1])), np.zeros(_ROWS, dtype=np.int64)
            n = min(_ROWS, len(X) - start)
            rows[:n], labels[:n] = X[start : start + n], y[start : start + n]
            found = gradients(named, torch.from_numpy(rows).to(dtype), torch.from_numpy(labels))
            flat = [piece[:n].reshape(n, -1) for piece in found.values()]
            ends = np.cumsum([piece.shape[1] for piece in flat]).tolist()
            return list(zip([0, *ends[:-1]], flat, strict=True))

        total = np.zeros(self.n_parameters)
        for start in range(0, len(X), _ROWS):
            add(pieces(start), total)
        return total


def _factor(pieces: Pieces, clip: Clip) -> Tensor:
    """What each record's gradient is multiplied by; 0, and the gradient as well, if it is not finite.

    With the largest-entry norm the gradients are cut in place and the factor is 1.
    """
    torch = _torch()
    first = pieces[0][1]
    squares = torch.zeros(len(first), dtype=torch.float64)
    for _, piece in pieces:
        for part in torch.split(piece, _SQUARES, dim=1):
            squares += torch.linalg.vecdot(part, part)
    finite = squares.isfinite()  # it is not, if any entry is not
    if not bool(finite.all()):
        for _, piece in pieces:
            piece[~finite] = 0.0
        squares[~finite] = 0.0
    if clip.norm == "largest":
        for _, piece in pieces:
            piece.clamp_(-clip.bound, clip.bound)
        factor: Tensor = torch.ones_like(first[:, 0])
    else:
        factor = (clip.bound / squares.sqrt().clamp_(min=clip.bound)).to(first.dtype)
    return factor


def _single_step(clip: Clip) -> float:
    """A power of two, with bound / step between 2**21 and 2**22."""
    return clip.unit * 2.0**20


def _named(module: nn.Module, weights: Floats) -> dict[str, Tensor]:
    torch = _torch()
    named, at = {}, 0
    for name, parameter in module.named_parameters():
        part = torch.from_numpy(weights[at : at + parameter.numel()].copy())
        named[name] = part.to(parameter.dtype).reshape(parameter.shape)
        at += parameter.numel()
    return named


_MODULES: dict[str, Factory] = {}


def register_module(name: str, factory: Factory) -> None:
    """Make a module known under `name`: call it at the coordinator and at every party, with the same code.

    Args:
        name: what travels.
        factory: takes (n_features, n_classes) and returns a torch.nn.Module from (n, n_features) to (n, n_classes).

    Example:
        >>> import tacit
        >>> import torch
        >>> tacit.register_module("one-layer", lambda n_features, n_classes: torch.nn.Linear(n_features, n_classes))
        >>> method = tacit.TernaryDescent(module="one-layer")
    """
    if name in _MODULES and _MODULES[name] is not factory:
        raise SettingError(f"module {name!r} is registered already; choose another name")
    _MODULES[name] = factory


def check_hidden(hidden: object) -> None:
    """Refuse widths of hidden layers that make no network."""
    fits = (
        isinstance(hidden, tuple | list)
        and len(hidden) <= MOST_LAYERS
        and all(isinstance(width, int) and not isinstance(width, bool) and 1 <= width <= WIDEST for width in hidden)
    )
    if not fits:
        raise SettingError(
            f"hidden_layer_sizes = {hidden!r} must be the widths of at most {MOST_LAYERS} hidden layers: (50, 20)"
        )


def _find_module(name: str) -> Factory:
    if name not in _MODULES:
        known = ", ".join(sorted(_MODULES)) or "none"
        raise SettingError(f"module = {name!r} is not registered here (known: {known}); call register_module first")
    return _MODULES[name]


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise SettingError("TernaryDescent needs PyTorch: pip install 'tacit[deep]'") from error
    return torch
