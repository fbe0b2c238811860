"""How a fit grows with columns, records and parties: processor time, wall time, bytes and memory, with the exponents.

    python benchmarks/growth.py FILE [--out FOLDER] [--only COLUMNS|RECORDS|PARTIES]

Each point is a process of its own: it draws records, fits them plainly (scikit-learn's lbfgs, pooled), then with
`PrivLogit` or with `PrivateNewton`, both in process, with guards, envelopes and the center's nodes. Processor time and
memory are those of the process and of the nodes together. Memory is the peak during a fit, above what the process held
before it and what the nodes held when they began. Bytes are what travelled, beside those of the table itself. What is
measured is kept in FILE: points that are there already are not measured again. With --out `growth.svg` is drawn there.

The center's start and the compilation of its programs are apart: a small fit of as many columns goes first. PrivLogit
is asked for no standard errors, which there are none of above 1,000 columns.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tacit import Federation, Policy, PrivateNewton, PrivLogit
from tacit.report.plots import BLUE, GREEN, VERMILION, picture

POLICY = Policy(not_private=["privlogit"])
METHODS: dict[str, Callable[[], Any]] = {
    "PrivLogit": lambda: PrivLogit(l2=1.0, standard_errors=False),
    "PrivateNewton": lambda: PrivateNewton(epsilon=1.0),
}
COLUMNS, RECORDS, PARTIES = (10, 50, 200, 600, 2000), (10_000, 100_000, 1_000_000, 10_000_000), (3, 10, 30, 100, 300)
AXES = {
    "columns": [(20_000, d, 3) for d in COLUMNS],
    "records": [(n, 20, 3) for n in RECORDS],
    "parties": [(30_000, 20, k) for k in PARTIES],
}
HEADINGS = ("processors", "wall", "sent", "memory", "rounds")
PLACE = {"columns": 1, "records": 0, "parties": 2}


@dataclass(frozen=True)
class Spent:
    """What one fit took."""

    processor: float  # seconds, of this process and of the center's nodes
    wall: float
    memory: int  # bytes above what was held before, by this process; by the nodes, above what they began with


class Watch:
    """The peak of this process's memory and of those that it started."""

    def __init__(self, nodes: int) -> None:
        """`nodes` is what the center's nodes held when they began."""
        self.own, self.over = psutil.Process(), threading.Event()
        gc.collect()
        _trimmed()
        self.start, self.peak = self.own.memory_info().rss + nodes, 0
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _tree(self) -> list[psutil.Process]:
        return [self.own, *self.own.children(recursive=True)]

    def held(self) -> int:
        """The memory of all of them."""
        return sum(_of(process, lambda one: one.memory_info().rss) for process in self._tree())

    def processor(self) -> float:
        return sum(_of(process, lambda one: sum(one.cpu_times()[:2])) for process in self._tree())

    def _look(self) -> None:
        while not self.over.wait(0.05):
            self.peak = max(self.peak, self.held() - self.start)


def _of(process: psutil.Process, look: Callable[[psutil.Process], Any]) -> Any:
    try:
        return look(process)
    except psutil.Error:  # it ended meanwhile
        return 0


def _trimmed() -> None:
    """Give back to the system what was freed, where it can be done."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def nodes_memory() -> int:
    """What the center's nodes hold."""
    return sum(_of(process, lambda one: one.memory_info().rss) for process in psutil.Process().children(recursive=True))


def spent_on(fit: Callable[[], Any], nodes: int) -> tuple[Any, Spent]:
    """What `fit` gives, and what it took."""
    watch = Watch(nodes)
    used, start = watch.processor(), time.perf_counter()
    value = fit()
    wall = time.perf_counter() - start
    used = watch.processor() - used
    watch.over.set()
    watch.thread.join()
    return value, Spent(processor=used, wall=wall, memory=max(watch.peak, watch.held() - watch.start))


def drawn(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    beta = rng.normal(size=d)
    return X, (rng.random(n) < expit(X @ beta * 2 / np.linalg.norm(beta) - 0.5)).astype(np.int64)


def federation(X: np.ndarray, y: np.ndarray, n_parties: int) -> Federation:
    return Federation.split(X, y, n_parties=n_parties, norm_bound=float(np.sqrt(X.shape[1]) + 2), policy=POLICY)


def point(method: str, n: int, d: int, n_parties: int) -> dict[str, Any]:
    """One point, measured in this process."""
    X, y = drawn(n, d)
    plain, of_plain = spent_on(lambda: LogisticRegression(C=1.0, tol=1e-4, max_iter=1000).fit(X, y), 0)
    begun = 0
    if method == "PrivLogit":
        METHODS[method]().fit(federation(*drawn(300, 3), 3))
        begun = nodes_memory()
        METHODS[method]().fit(federation(*drawn(max(2000, 2 * d), d), 3))
    parties = federation(X, y, n_parties)
    model, own = spent_on(lambda: METHODS[method]().fit(parties), begun)
    traffic = model.facts_.traffic
    apart = float(np.linalg.norm(model.coef_ - plain.coef_) / np.linalg.norm(plain.coef_))
    return {
        "method": method, "n": n, "d": d, "parties": n_parties, "rounds": traffic.rounds,
        "bytes": traffic.bytes_up + traffic.bytes_down, "own": asdict(own), "plain": asdict(of_plain), "apart": apart,
    }  # fmt: skip


def measured(path: Path, only: str | None) -> list[dict[str, Any]]:
    """All points; those that are not in the file yet are measured, each in a process of its own."""
    known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    for axis, sizes in AXES.items():
        for method in METHODS:
            for n, d, k in sizes if only in (None, axis) else []:
                if any((one["method"], one["n"], one["d"], one["parties"]) == (method, n, d, k) for one in known):
                    continue
                command = [sys.executable, __file__, str(path), "--point", method, str(n), str(d), str(k)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{method} {n:,} x {d:,}, {k} parties: FAILED\n{done.stderr[-2000:]}", flush=True)
                    continue
                known.append(json.loads(done.stdout.splitlines()[-1]))
                path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
                print(line_of(known[-1]), flush=True)
    return known


def line_of(one: dict[str, Any]) -> str:
    own, plain = one["own"], one["plain"]
    return (
        f"{one['method']:13} {one['n']:10,} x {one['d']:5,}, {one['parties']:3} parties: {own['processor']:8.1f} s of "
        f"processors ({own['processor'] / plain['processor']:6.1f} times the plain fit), wall {own['wall']:7.1f} s "
        f"({own['wall'] / plain['wall']:6.1f}), {one['bytes'] / 1e6:9.1f} MB "
        f"({one['bytes'] / (8 * one['n'] * one['d']):8.2f} of the table), memory {own['memory'] / 1e6:7.0f} MB, "
        f"{one['rounds']} rounds"
    )


def exponent(x: list[float], values: list[float]) -> float:
    """The slope by least squares in logs."""
    return float(np.polyfit(np.log(x), np.log(np.maximum(values, 1e-9)), 1)[0])


def chosen(known: list[dict[str, Any]], method: str, axis: str) -> list[dict[str, Any]]:
    points = [
        next((one for one in known if (one["method"], one["n"], one["d"], one["parties"]) == (method, *size)), None)
        for size in AXES[axis]
    ]
    return [one for one in points if one is not None]


def tell(known: list[dict[str, Any]]) -> None:
    """All points and the exponents, over all points and of the last step alone, as the page has them."""
    for axis in AXES:
        print(f"\n| {axis} | method | " + " | ".join(HEADINGS) + " |\n|---|---|" + "---|" * len(HEADINGS))
        for method in METHODS:
            points = chosen(known, method, axis)
            for one in points:
                print(f"| {size_of(one, axis):,} | {method} | " + " | ".join(cells(one)) + " |")
            if len(points) > 1:
                print(f"| exponent | {method} | " + " | ".join(exponents(points, axis)) + " |")


def size_of(one: dict[str, Any], axis: str) -> int:
    return int(one[("n", "d", "parties")[PLACE[axis]]])


def cells(one: dict[str, Any]) -> list[str]:
    own, plain = one["own"], one["plain"]
    return [
        f"{own['processor']:.1f} s, {own['processor'] / plain['processor']:.3g} times the plain fit",
        f"{own['wall']:.1f} s, {own['wall'] / plain['wall']:.3g} times",
        f"{_short(one['bytes'] / 1e6)} MB, {one['bytes'] / (8 * one['n'] * one['d']):.2g} of the table",
        f"{own['memory'] / 1e6:,.0f} MB",
        str(one["rounds"]),
    ]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def exponents(points: list[dict[str, Any]], axis: str) -> list[str]:
    x = [float(size_of(one, axis)) for one in points]
    kinds = (
        [one["own"]["processor"] for one in points],
        [one["own"]["wall"] for one in points],
        [float(one["bytes"]) for one in points],
        [float(one["own"]["memory"]) for one in points],
        [float(one["rounds"]) for one in points],
    )
    return [f"{exponent(x, values):.2f}; at last {exponent(x[-2:], values[-2:]):.2f}" for values in kinds]


def draw(known: list[dict[str, Any]], folder: Path) -> None:
    """The plot: a row for each method, a column for each axis."""
    kinds: tuple[tuple[str, str, Callable[[dict[str, Any]], float]], ...] = (
        ("processor seconds", BLUE, lambda one: one["own"]["processor"]),
        ("MB sent", VERMILION, lambda one: one["bytes"] / 1e6),
        ("MB of memory", GREEN, lambda one: max(one["own"]["memory"] / 1e6, 0.1)),
    )

    def panels(figure: Figure) -> None:
        for row, method in zip(figure.subplots(2, 3), METHODS, strict=True):
            for axes, axis in zip(row, AXES, strict=True):
                points = chosen(known, method, axis)
                x = [size_of(one, axis) for one in points]
                for (label, colour, value), mark in zip(kinds, ("o-", "s--", "^-."), strict=True):
                    axes.loglog(x, [value(one) for one in points], mark, color=colour, label=label)
                axes.loglog(x, [one["plain"]["processor"] for one in points], ":", color="grey", label="plain fit, s")
                axes.set(xlabel=axis, ylabel=method if axis == "columns" else "")
                for side in (axes.xaxis, axes.yaxis):  # plain numbers: mathematical text is not read in our pictures
                    side.set_major_formatter(lambda value, _: f"{value:g}")
                    side.set_minor_formatter(NullFormatter())
                axes.set_xticks(x, [f"{value:,}" for value in x], rotation=30, ha="right")
                if axis == "columns":
                    axes.legend(frameon=False, fontsize=7)

    words = "; ".join(
        f"{method} against {axis}: "
        + ", ".join(f"{one['own']['processor']:.1f} s at {size_of(one, axis):,}" for one in points)
        for method in METHODS
        for axis in AXES
        if (points := chosen(known, method, axis))
    )
    svg = picture(
        panels,
        figure_id="growth",
        title="How a fit grows with columns, records and parties",
        description=f"Processor seconds. {words}.",
        height=6.4,
        width=10.0,
    )
    (folder / "growth.svg").write_text(svg + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=Path("docs/growth.json"))
    parser.add_argument("--out", type=Path, help="draw the plot into this folder")
    parser.add_argument("--only", choices=list(AXES))
    parser.add_argument("--point", nargs=4, metavar=("METHOD", "N", "D", "PARTIES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.point:
        method, *sizes = given.point
        print(json.dumps(point(method, *map(int, sizes))))
        return
    known = measured(given.file, given.only)
    tell(known)
    if given.out is not None:
        draw(known, given.out)


if __name__ == "__main__":
    main()
