"""Networks: exact sums of clipped gradients, the same gradients as PyTorch's, and code that never travels."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import SettingError
from tacit.models.ghost import _ROWS, Clip, _exp
from tacit.models.network import Perceptron, TorchNetwork, register_module

pytestmark = pytest.mark.xdist_group("ternary-descent")  # PyTorch is imported once

CLIPS = [Clip(bound=1.0), Clip(bound=0.37), Clip(bound=0.02, norm="largest")]


def batch(n: int, d: int = 6, classes: int = 3, seed: int = 0, norm: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(n, d))
    X *= norm / np.linalg.norm(X, axis=1, keepdims=True)
    return X, chance.integers(0, classes, n)


def network(**changes: Any) -> Perceptron:
    return Perceptron(**{"n_features": 6, "n_classes": 3, "hidden": (8, 5)} | changes)


def reach(vector: np.ndarray, clip: Clip) -> float:
    """The norm in units of the bound, from exact integers."""
    entries = [int(v) for v in vector]
    largest = max(map(abs, entries)) if clip.norm == "largest" else math.sqrt(sum(v * v for v in entries))
    return largest * clip.unit / clip.bound


@given(
    n=st.integers(0, 70),
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([1e-3, 1.0, 30.0, 2.0**18]),
    norm=st.sampled_from([1e-6, 1.0, 50.0]),
    activation=st.sampled_from(["relu", "tanh"]),
    hidden=st.sampled_from([(), (4,), (8, 5)]),
    clip=st.sampled_from(CLIPS),
)
@settings(max_examples=200, deadline=None)
def test_a_record_adds_its_own_integers_whoever_else_is_in_the_batch(
    n: int, seed: int, spread: float, norm: float, activation: Any, hidden: tuple[int, ...], clip: Clip
) -> None:
    """The sensitivity of the sum, bit for bit; rows may even be longer than the bound that was declared."""
    own = network(activation=activation, hidden=hidden)
    weights = np.clip(spread * own.initial(seed), -(2.0**20), 2.0**20)
    X, y = batch(n + 1, seed=seed, norm=norm)
    place = seed % (n + 1)
    alone = own.clipped_sum(weights, X[place : place + 1], y[place : place + 1], clip)
    without = own.clipped_sum(weights, np.delete(X, place, axis=0), np.delete(y, place), clip)
    np.testing.assert_array_equal(own.clipped_sum(weights, X, y, clip), without + alone)
    assert reach(alone, clip) <= 1


def test_it_stays_exact_over_many_products_and_wide_layers() -> None:
    own = Perceptron(n_features=264, n_classes=2, hidden=(50, 20))
    weights = own.initial(1)
    X, y = batch(_ROWS + 500, d=264, classes=2)
    order = np.random.default_rng(1).permutation(len(X))
    clip = Clip(bound=0.5)
    whole = own.clipped_sum(weights, X, y, clip)
    np.testing.assert_array_equal(whole, own.clipped_sum(weights, X[order], y[order], clip))
    parts = [own.clipped_sum(weights, X[i::7], y[i::7], clip) for i in range(7)]
    np.testing.assert_array_equal(whole, np.sum(parts, axis=0))


def test_the_bound_is_reached_by_a_record_that_is_clipped() -> None:
    own = network()
    X, y = batch(1)
    clip = Clip(bound=0.01)
    assert 0.999 < reach(own.clipped_sum(own.initial(0), X, y, clip), clip) <= 1


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("clip", CLIPS)
def test_fixed_point_is_near_to_floating_point(activation: Any, clip: Clip) -> None:
    own = network(activation=activation)
    X, y = batch(400)
    exact = own.clipped_sum(own.initial(0), X, y, clip) * clip.unit
    floats = own.float_sum(own.initial(0), X, y, clip)
    assert np.linalg.norm(exact - floats) < 1e-3 * np.linalg.norm(floats)


def test_exp_is_exp() -> None:
    x = -np.concatenate([np.linspace(0, 40, 10_001), [0.0, 1e-300, 80.0]])
    np.testing.assert_allclose(_exp(x), np.exp(x), rtol=1e-14)


def test_initial_weights_depend_on_the_public_seed_alone() -> None:
    own = Perceptron(n_features=100, n_classes=2, hidden=(200,), input_bound=5.0)
    np.testing.assert_array_equal(own.initial(3), own.initial(3))
    assert np.any(own.initial(3) != own.initial(4))
    X, _ = batch(300, d=100, norm=5.0)
    first = own.stack(own.initial(3)).layers[0]
    assert np.std(X @ first.W.T) == pytest.approx(math.sqrt(2), rel=0.1)


@pytest.mark.parametrize("hidden", [(0,), (1.5,), (True,), "50", (9000,), (2,) * 9])
def test_layers_that_make_no_network_are_named(hidden: Any) -> None:
    with pytest.raises(SettingError, match="hidden_layer_sizes = "):
        network(hidden=hidden)


def test_sizes_that_cannot_be_exact_are_named() -> None:
    with pytest.raises(SettingError, match="9000 columns"):
        network(n_features=9000)
    with pytest.raises(SettingError, match="input_bound = 0"):
        network(input_bound=0)
    with pytest.raises(SettingError, match="clip = -1"):
        Clip(bound=-1)


# --- with PyTorch ----------------------------------------------------------------------------------------------------


def perceptron_module(n_features: int, n_classes: int) -> Any:
    nn = pytest.importorskip("torch").nn
    return nn.Sequential(nn.Linear(n_features, 8), nn.ReLU(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, n_classes))


def overflowing_module(n_features: int, n_classes: int) -> Any:
    torch = pytest.importorskip("torch")

    class Overflowing(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(n_features, n_classes)

        def forward(self, x: Any) -> Any:
            return self.linear(torch.where(x > 5.0, x * 1e300 * 1e300, x))

    return Overflowing()


register_module("test-perceptron", perceptron_module)
register_module("test-overflowing", overflowing_module)


@pytest.fixture
def module() -> TorchNetwork:
    pytest.importorskip("torch")
    return TorchNetwork(name="test-perceptron", n_features=6, n_classes=3)


def one_by_one(module: TorchNetwork, weights: np.ndarray, X: np.ndarray, y: np.ndarray, clip: Clip) -> np.ndarray:
    """Clip and add up, each record by itself, by plain autograd."""
    import torch

    total = np.zeros(module.n_parameters)
    torch.nn.utils.vector_to_parameters(torch.from_numpy(weights), module.double.parameters())
    for row, label in zip(X, y, strict=True):
        module.double.zero_grad()
        scores = module.double(torch.from_numpy(row[None]))
        torch.nn.functional.cross_entropy(scores, torch.tensor([label])).backward()
        g = np.concatenate([p.grad.numpy().ravel() for p in module.double.parameters()])  # type: ignore[union-attr]
        if clip.norm == "l2":
            total += g * min(1, clip.bound / np.linalg.norm(g))
        else:
            total += np.clip(g, -clip.bound, clip.bound)
    return total


@pytest.mark.parametrize("clip", CLIPS)
def test_ghost_vmap_and_autograd_agree(module: TorchNetwork, clip: Clip) -> None:
    own = network()
    weights = module.initial(2)
    X, y = batch(300)
    expected = one_by_one(module, weights, X, y, clip)
    np.testing.assert_allclose(own.float_sum(weights, X, y, clip), expected, atol=1e-10)
    np.testing.assert_allclose(module.float_sum(weights, X, y, clip), expected, atol=1e-10)
    np.testing.assert_allclose(module.clipped_sum(weights, X, y, clip) * clip.unit, expected, atol=2e-3 * len(X))
    np.testing.assert_allclose(own.scores(weights, X), module.scores(weights, X), atol=1e-12)


@pytest.mark.parametrize("clip", CLIPS)
def test_no_record_of_a_module_reaches_beyond_the_bound(module: TorchNetwork, clip: Clip) -> None:
    X, y = batch(12)
    reached = [
        reach(module.clipped_sum(2 * module.initial(i), X[i : i + 1], y[i : i + 1], clip), clip) for i in range(12)
    ]
    assert 0.99 < max(reached) <= 1


@pytest.mark.slow
def test_a_modules_records_add_up_whoever_else_is_in_the_batch(module: TorchNetwork) -> None:
    """Not proved, since PyTorch promises no more than rounding; but always the same kernels run, and so it is here."""
    X, y = batch(30)
    weights, clip = module.initial(0), Clip(bound=1.0)
    whole = module.clipped_sum(weights, X, y, clip)
    alone = sum(module.clipped_sum(weights, X[i : i + 1], y[i : i + 1], clip) for i in range(30))
    assert np.linalg.norm((whole - alone) * clip.unit) < 1e-4


@pytest.mark.parametrize("clip", CLIPS)
def test_a_gradient_that_is_not_finite_counts_as_zero(clip: Clip) -> None:
    pytest.importorskip("torch")
    own = TorchNetwork(name="test-overflowing", n_features=2, n_classes=2)
    X, y = np.array([[0.5, 0.1], [9.0, 9.0], [0.2, -0.4]]), np.array([0, 1, 1])
    weights = own.initial(0)
    for total in (own.clipped_sum, own.float_sum):
        np.testing.assert_array_equal(total(weights, X, y, clip), total(weights, X[::2], y[::2], clip))
        assert np.all(total(weights, X[1:2], y[1:2], clip) == 0)


def test_modules_are_known_by_name() -> None:
    pytest.importorskip("torch")
    with pytest.raises(SettingError, match=r"module = 'nowhere' is not registered here.*test-perceptron"):
        TorchNetwork(name="nowhere", n_features=2, n_classes=2).initial(0)
    with pytest.raises(SettingError, match="registered already"):
        register_module("test-perceptron", overflowing_module)
    register_module("test-perceptron", perceptron_module)


def test_a_modules_initial_weights_leave_the_global_generator_alone(module: TorchNetwork) -> None:
    import torch

    before = torch.random.get_rng_state()
    np.testing.assert_array_equal(module.initial(5), module.initial(5))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.slow
def test_without_pytorch_the_perceptron_works_and_a_module_says_what_is_missing() -> None:
    program = """
import sys
class NoTorch:
    def find_spec(self, name, *rest):
        if name.split(".")[0] == "torch":
            raise ImportError(name)
sys.meta_path.insert(0, NoTorch())
import numpy as np
from tacit.errors import SettingError
from tacit.methods.ternary.method import TernaryDescent
from tacit import Federation
from tacit.models.network import register_module
X = np.random.default_rng(0).normal(size=(60, 2))
parties = Federation.split(X, (X[:, 0] > 0).astype(int), n_parties=2, norm_bound=1.0)
TernaryDescent(rounds=1, batch=0.5, hidden_layer_sizes=(3,)).fit(parties)
register_module("any", lambda n_features, n_classes: None)
try:
    TernaryDescent(rounds=1, batch=0.5, module="any").fit(parties)
except SettingError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "TernaryDescent needs PyTorch: pip install 'tacit[deep]'"
