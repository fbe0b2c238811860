"""Verdicts on the accuracy page: where PrivateNewton is as good as the best, and where another is ahead."""

from __future__ import annotations

import math

from peers.accuracy_cell import HIGHER, OURS
from tacit.report.curve import CurvePoint

Curves = dict[str, list[CurvePoint]]
FLAGSHIP = "private-newton"
ROUNDING = 1e-6  # kept figures have seven digits


def verdict_row(where: str, curves: Curves, measure: str) -> str:
    """One row: at which epsilons it is within one standard error of the best for parties, and of all."""
    ours = {method: points for method, points in curves.items() if method in OURS}
    entries = []
    for rivals in (ours, curves):
        if len(rivals) == 1:
            entries.append("no other was run")
            continue
        found = [point.epsilon for point in curves[FLAGSHIP] if not _ahead(rivals, point, measure)]
        whole = len(found) == len(curves[FLAGSHIP])
        entries.append("all" if whole else ", ".join(f"{epsilon:g}" for epsilon in found) or "none")
    return f"| {where} | " + " | ".join(entries) + " |"


def misses(curves: Curves, measure: str) -> list[str]:
    """Where another is ahead by more than a standard error: who, and whether a method for parties is, too."""
    ours = {method: points for method, points in curves.items() if method in OURS}
    found = []
    for point in curves.get(FLAGSHIP, []):
        winner = _ahead(curves, point, measure)
        if winner is None:
            continue
        line = f"epsilon {point.epsilon:g}: {point.mean:.4f} against {_told(curves, winner, point.epsilon)}"
        among = _ahead(ours, point, measure)
        if among is not None and among != winner:
            line += f", and {_told(curves, among, point.epsilon)}"
        found.append(line)
    return found


def at(curves: Curves, epsilon: float) -> dict[str, CurvePoint]:
    """The point of each method at one epsilon."""
    return {method: point for method, points in curves.items() for point in points if point.epsilon == epsilon}


def best(rivals: dict[str, CurvePoint], measure: str) -> tuple[str, CurvePoint]:
    """Who has the best mean."""
    return max(rivals.items(), key=lambda item: _sign(measure) * item[1].mean)


def as_good(point: CurvePoint, other: CurvePoint, measure: str) -> bool:
    """Whether a mean is not behind another by more than one standard error of the difference."""
    behind = _sign(measure) * (other.mean - point.mean)
    return behind <= math.hypot(point.standard_error, other.standard_error) + ROUNDING


def _ahead(rivals: Curves, point: CurvePoint, measure: str) -> str | None:
    """Who is best, if that is ahead of the point."""
    winner, its = best(at(rivals, point.epsilon), measure)
    return None if as_good(point, its, measure) else winner


def _told(curves: Curves, method: str, epsilon: float) -> str:
    return f"{at(curves, epsilon)[method].mean:.4f} of {method}"


def _sign(measure: str) -> int:
    return 1 if measure in HIGHER else -1
