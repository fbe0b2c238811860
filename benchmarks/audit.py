"""Try to refute every promise, and see that half the noise, and the documents' mistakes, would be noticed.

    python benchmarks/audit.py [--runs 2000] [--out docs] [--only averaging,ensemble] [--kind printed]

Writes audit.md and audit.svg. Exit status 1 if a sound method is refuted, or if something that must be flagged is not.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from tacit.methods import METHODS, make
from tacit.report.curve import audit_plot
from tacit.studies.audit import audit

# Every sound method at epsilon 1; Gaussian variants at a delta where few runs show much.
SOUND: dict[str, list[dict[str, Any]]] = {
    "private-newton": [{"delta": 0.1}],
    "averaging": [{"delta": 0}, {"delta": 0.1}],
    "objective-perturbation": [{"delta": 0}, {"delta": 0.1}],
    "functional-mechanism": [{"delta": 0}, {"delta": 0.1}],
    "noisy-descent": [{"delta": 0.1}],
    "ensemble": [{"delta": 0}, {"delta": 0.1}],
    "hypothesis-transfer": [{"delta": 0}],
    "ternary-descent": [{"delta": 0.1}],
}
# No pair of records reaches these methods' bounds in all statistics at once: it takes more runs to see half the noise.
RUNS = {
    ("functional-mechanism", "sound", 0): 4,
    ("objective-perturbation", "sound", 0): 8,
    ("objective-perturbation", "sound", 0.1): 8,
    ("functional-mechanism", "printed", None): 0.25,  # of 100 rounds each
}
# What is broken as printed, and must be caught.
PRINTED: dict[str, list[dict[str, Any]]] = {
    "averaging": [{"calibration": "paper"}],
    "objective-perturbation": [{"calibration": "paper"}],
    "functional-mechanism": [{"calibration": "paper"}],
    "hypothesis-transfer": [{"calibration": "paper"}],
    "noisy-descent": [{"calibration": "paper", "delta": 0.1}],
    "ternary-descent": [{"calibration": "paper", "delta": 0.1}],
}

HEAD = """# Audit

Written by `make audit`. Each method runs {runs:,} times (pure `functional-mechanism` four times as often,
`objective-perturbation` eight times, printed `functional-mechanism` a quarter) on each of two neighbouring
federations, chosen so that it tells them apart as well as it ever can; from all that was opened a lower bound on
epsilon is computed that holds with confidence 99.9 %.
Claimed is epsilon = 1 (Gaussian variants: at delta = 0.1). A bound above 1 refutes the claim. A bound below 1 does
not prove it: the proofs are in the methods' files. For a calibration as printed, the claim is the document's own for
that run. The loss of printed `averaging` is known exactly and needs no runs.
The last column shows that the audit would notice: the same method with half its noise must be flagged.
`curator-averaging`, whose keys make a run slow, is audited in the tests alone, with short keys.

| method | settings | claimed | epsilon is at least | verdict | with half the noise | noticed |
|---|---|---|---|---|---|---|
"""


def words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "defaults"


def earlier(page: Path) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The rows of an earlier page: what is not audited again stays as it was."""
    cells = [tuple(c.strip() for c in line.split("|")[1:-1]) for line in page.read_text(encoding="utf-8").splitlines()]
    return {row[:2]: row for row in cells if len(row) == 7 and row[0] in METHODS}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--only", default="", help="methods, separated by commas")
    parser.add_argument("--kind", choices=("sound", "printed"), help="calibrations; all of them without it")
    arguments = parser.parse_args()
    chosen = set(arguments.only.split(",")) - {""} or set(METHODS)
    page = None if arguments.out is None else arguments.out / "audit.md"
    everything = chosen == set(METHODS) and arguments.kind is None
    rows = {} if page is None or everything else earlier(page)
    failures = []
    for kind, cases in (("sound", SOUND), ("printed", PRINTED)):
        for name, variants in cases.items():
            for settings in variants:
                if name not in chosen or arguments.kind not in (None, kind):
                    continue
                start = time.perf_counter()
                runs = round(arguments.runs * RUNS.get((name, kind, settings.get("delta")), 1))
                result = audit(make(name, {"epsilon": 1.0, **settings}), runs=runs, power=kind == "sound")
                half = f"{result.epsilon_at_half:.2f}" if kind == "sound" else ""
                noticed = ("yes" if result.has_power else "NO") if kind == "sound" else ""
                verdict = "not refuted" if result.passes else "FLAGGED"
                claimed = f"{result.as_it_is[0].claimed:.2f}"
                row = (name, words(settings), claimed, f"{result.epsilon:.2f}", verdict, half, noticed)
                rows[row[:2]] = row
                if result.passes != (kind == "sound") or (kind == "sound" and not result.has_power):
                    failures.append(f"{name} ({words(settings)})")
                print(f"{' | '.join(row)}  ({time.perf_counter() - start:.0f} s)", flush=True)
    if page is not None:
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows.values())
        bars = [
            (f"{name}, {settings}", float(found), float(claim)) for name, settings, claim, found, *_ in rows.values()
        ]
        page.write_text(HEAD.format(runs=arguments.runs) + table + "\n\n![audit](audit.svg)\n", encoding="utf-8")
        page.with_suffix(".svg").write_text(audit_plot(bars, figure_id="audit"), encoding="utf-8")
    for failure in failures:
        print(f"audit: {failure} did not come out as it must", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
