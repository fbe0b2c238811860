"""Draws a second of every sampler, and how that compares with numpy's float normal in the same run.

Everything runs on one core. The first column counts the processor's seconds, the second those of the clock, which on a
busy machine are more. A sampler costs one word for each proposal, so the row of words says what is left to gain.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tacit.privacy.noise.discrete import _Gaussian, _Slots, discrete_gaussian, discrete_laplace
from tacit.privacy.noise.grid import VectorSum, gaussian_grid, pure_grid
from tacit.privacy.noise.spherical import spherical_laplace_shares
from tacit.rand import Rng

N = 1_000_000
SCALES = (0.3, 1.0, 10.0, 1e3, 1e6, 1e12)


def rate(draw: Callable[[], object], n: int) -> tuple[float, float]:
    """Draws a second of the processor, and of the clock: the best of seven."""
    times = []
    for _ in range(7):
        start = time.process_time(), time.perf_counter()
        draw()
        times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    busy, waited = map(min, zip(*times, strict=True))
    return n / busy, n / waited


def main() -> None:
    numpy_normal = np.random.default_rng(1)
    null = rate(lambda: numpy_normal.normal(size=N), N)
    print(f"{'sampler':<44}{'draws/s':>14}{'by the clock':>14}{'of numpy':>10}")
    print(f"{'numpy normal (floats, not private)':<44}{null[0]:>14,.0f}{null[1]:>14,.0f}{1:>10.2f}")
    for label, rng in (("system", Rng.system()), ("seeded", Rng.seeded(1))):
        rows: list[tuple[str, Callable[[], object], int]] = [("64-bit words", lambda rng=rng: rng.words(N), N)]
        for scale in SCALES:
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
            busy, waited = rate(draw, n)
            print(f"{label + ' ' + name:<44}{busy:>14,.0f}{waited:>14,.0f}{busy / null[0]:>10.2f}")
    for scale in SCALES:
        slots, rng = _Slots(_Gaussian(scale)), Rng.system()
        accepted = slots.propose(N, rng).size / N
        tables = rate(lambda s=scale: _Slots(_Gaussian(s)), 1)[0]
        print(
            f"discrete_gaussian({scale:g}): {accepted:.1%} of proposals are accepted, {slots.sure.mean() / 2**16:.1%} "
            f"without an exponential; tables in {1e3 / tables:.2f} ms"
        )


if __name__ == "__main__":
    main()
