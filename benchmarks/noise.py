"""Draws a second of every sampler, and how that compares with numpy's float normal in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tacit.privacy.noise.discrete import discrete_gaussian, discrete_laplace
from tacit.privacy.noise.grid import VectorSum, gaussian_grid, pure_grid
from tacit.privacy.noise.spherical import spherical_laplace_shares
from tacit.rand import Rng

N = 1_000_000


def rate(draw: Callable[[], object], n: int) -> float:
    """Draws a second, the best of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        draw()
        times.append(time.perf_counter() - start)
    return n / min(times)


def main() -> None:
    numpy_normal = np.random.default_rng(1)
    null = rate(lambda: numpy_normal.normal(size=N), N)
    print(f"{'sampler':<44}{'draws/s':>12}{'of numpy':>10}")
    print(f"{'numpy normal (floats, not private)':<44}{null:>12,.0f}{1:>10.2f}")
    for label, rng in (("system", Rng.system()), ("seeded", Rng.seeded(1))):
        rows: list[tuple[str, Callable[[], object], int]] = [("64-bit words", lambda rng=rng: rng.words(N), N)]
        for scale in (0.3, 3.7, 50.0, 1e5, 2.0**40):
            for sampler in (discrete_laplace, discrete_gaussian):
                draw = lambda f=sampler, s=scale, rng=rng: f(s, N, rng=rng)  # noqa: E731
                rows.append((f"{sampler.__name__}({scale:g})", draw, N))
        for honest, n_shares in ((1, 5000), (20_000, 5000)):
            draw = lambda h=honest, n=n_shares, rng=rng: spherical_laplace_shares(1.0, 123, h, n, rng=rng)  # noqa: E731
            rows.append((f"spherical share, d=123, honest={honest}", draw, n_shares * 123))
        total = VectorSum(dimension=123, sensitivity=1.0, value_bound=10.0, n_parties=10)
        for name, grid in (
            ("pure grid, d=123", pure_grid(total, epsilon=1.0)),
            ("gaussian grid, d=123", gaussian_grid(total, epsilon=1.0, delta=1e-6)),
        ):
            values = np.zeros((4000, 123))
            rows.append((name, lambda g=grid, v=values, rng=rng: g.to_grid(v, rng=rng), values.size))
        for name, draw, n in rows:
            speed = rate(draw, n)
            print(f"{label + ' ' + name:<44}{speed:>12,.0f}{speed / null:>10.2f}")


if __name__ == "__main__":
    main()
