"""Secure sums a second: noise, shares, sealing, adding and opening, against adding up in the clear with float noise.

python benchmarks/secure_sum.py [--numbers 10000] [--seconds 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from tacit.privacy.noise.grid import NoiseGrid, VectorSum, gaussian_grid
from tacit.rand import Rng
from tacit.secure.center.center import MessageCenter
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.center.process import ProcessCenter
from tacit.secure.envelope import Label, seal
from tacit.secure.ring import Floats

RNG = Rng.system()


def make_grid(n_numbers: int, n_parties: int) -> NoiseGrid:
    total = VectorSum(dimension=n_numbers, sensitivity=1.0, value_bound=1.0, n_parties=n_parties)
    return gaussian_grid(total, epsilon=1.0, delta=1e-6)


def secure_sum(center: MessageCenter, grid: NoiseGrid, values: Floats) -> tuple[Floats, int]:
    """The opened sum, noise included, and the bytes that the parties sent."""
    context = RNG.bytes(8).hex()
    envelopes = {}
    for j, row in enumerate(values):
        label = Label(context=context, party=f"p{j}", n_parties=len(values))
        envelopes[label.party] = seal(grid.to_grid(row[None], rng=RNG)[0], label, center.keys, rng=RNG)
    opened = center.open_sum(context, envelopes)
    return grid.from_grid(opened), sum(len(e) for sealed in envelopes.values() for e in sealed)


def clear_sum(values: Floats, generator: np.random.Generator, noise_std: float) -> Floats:
    return np.asarray((values + generator.normal(scale=noise_std, size=values.shape)).sum(axis=0))


def rate(work: Callable[[], object], seconds: float) -> float:
    """Calls a second."""
    work()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        work()
        calls += 1
    return calls / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    with ProcessCenter() as processes:
        print(
            f"{'center':<12}{'parties':>8}{'numbers':>9}{'sums/s':>9}{'of clear':>10}{'MB sent':>9}{'error/noise':>13}"
        )
        for n_parties, n_numbers in ((5, arguments.numbers), (1000, arguments.numbers // 10)):
            values = rng.normal(size=(n_parties, n_numbers))
            values /= np.linalg.norm(values, axis=1, keepdims=True)
            grid = make_grid(n_numbers, n_parties)
            clear = rate(lambda v=values: clear_sum(v, rng, 1.0), 1.0)  # type: ignore[misc]
            centers: list[tuple[str, MessageCenter]] = [("in process", EmbeddedCenter()), ("processes", processes)]
            for name, center in centers:
                opened, sent = secure_sum(center, grid, values)
                error = float(np.std(opened - values.sum(axis=0)) / grid.noise_std)
                speed = rate(lambda c=center, g=grid, v=values: secure_sum(c, g, v), arguments.seconds)  # type: ignore[misc]
                print(
                    f"{name:<12}{n_parties:>8}{n_numbers:>9}{speed:>9.2f}{speed / clear:>10.3f}{sent / 1e6:>9.2f}"
                    f"{error:>13.3f}"
                )


if __name__ == "__main__":
    main()
