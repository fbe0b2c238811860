"""One private training step of a 264-50-20-2 network, batch 1,000, noise included: ours against Opacus's.

python benchmarks/network_step.py [--batch 1000] [--threads 1] [--repeat 15]

Ours: clip, sum, exact noise, choice of the largest tenth, packing; by fixed-point ghost clipping (the default) and by
vmap (any module). Opacus: forward, backward, clip, float noise, SGD step. The three take turns; medians are compared.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from tacit.methods.ternary.upload import Upload
from tacit.models.network import Network, Perceptron, TorchNetwork, register_module
from tacit.rand import Rng
from tacit.wire import encode

WIDTHS = (264, 50, 20, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=15)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(arguments.threads)
    chance = np.random.default_rng(0)
    X = chance.normal(size=(arguments.batch, WIDTHS[0]))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = chance.integers(0, WIDTHS[-1], arguments.batch)

    def module(n_features: int, n_classes: int) -> torch.nn.Module:
        nn = torch.nn
        return nn.Sequential(
            nn.Linear(n_features, 50), nn.ReLU(), nn.Linear(50, 20), nn.ReLU(), nn.Linear(20, n_classes)
        )

    register_module("benchmark", module)
    steps = {
        "ghost": ours(Perceptron(n_features=WIDTHS[0], n_classes=WIDTHS[-1]), X, y),
        "vmap": ours(TorchNetwork(name="benchmark", n_features=WIDTHS[0], n_classes=WIDTHS[-1]), X, y),
        "opacus": opacus(module(WIDTHS[0], WIDTHS[-1]), X, y),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(arguments.repeat + 2):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if i >= 2:
                times[name].append(time.perf_counter() - start)
    median = {name: float(np.median(seconds)) for name, seconds in times.items()}
    for name, seconds in median.items():
        ratio = seconds / median["opacus"]
        print(f"{name:<8}{1e3 * seconds:8.1f} ms  {ratio:6.2f} of Opacus  (best {1e3 * min(times[name]):.1f} ms)")
    upload, full = steps["ghost"](), 4 * Perceptron(n_features=WIDTHS[0], n_classes=WIDTHS[-1]).n_parameters
    print(f"upload  {upload} bytes, {upload / full:.3f} of a gradient of {full} bytes in single precision")
    if median["vmap"] > median["opacus"] or median["ghost"] > median["opacus"] / 4 or upload > full / 10:
        sys.exit("slower or larger than it should be")


def ours(network: Network, X: np.ndarray, y: np.ndarray) -> Callable[[], int]:
    weights, rng = network.initial(0), Rng.system()
    chosen = -(-network.n_parameters // 10)
    upload = Upload(mechanism="gaussian", noise=1.0, clip=1.0, n_chosen=chosen, ternary=True)

    def step() -> int:
        return len(encode(upload.compress(network.clipped_sum(weights, X, y, upload.bound), len(y), rng=rng)))

    return step


def opacus(module: object, X: np.ndarray, y: np.ndarray) -> Callable[[], int]:
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    wrapped = GradSampleModule(module)
    optimizer = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=0.0),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        expected_batch_size=len(y),
    )
    rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)

    def step() -> int:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(wrapped(rows), labels).backward()
        optimizer.step()
        return 0

    return step


if __name__ == "__main__":
    main()
