"""A fitted model's result: shown, and written as the same four files by every command that fits one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.console import err, out

if TYPE_CHECKING:
    from tacit.methods import Method


def show_result(
    model: Method, directory: Path | None, *, as_json: bool, extra: Mapping[str, object] | None = None
) -> None:
    """Print a fitted model's report, or one JSON object; and write its files if there is a directory for them.

    `extra` are further facts of the run, which come first in the JSON object.
    """
    from tacit.storage import write_json

    result = {**(extra or {}), **result_of(model)}
    if directory is not None:
        model.save(directory / "model.json")
        model.report.save(directory / "report.html")
        model.report.save(directory / "report.txt")
        write_json(directory / "result.json", result)
    if as_json:
        print(json.dumps(result))
        return
    out.print(model.report.text(), markup=False, soft_wrap=True)
    if directory is not None:
        err.print(f"wrote {directory / 'report.html'}, report.txt, model.json and result.json", markup=False)


def result_of(model: Method) -> dict[str, object]:
    """A fitted model as one JSON object."""
    from tacit.report.plain import plain
    from tacit.report.verdict import verdict_lines

    facts = model.facts_
    errors = {row.label: row.standard_error for row in facts.coefficients} if facts.has_standard_errors else None
    result = plain(
        {
            "method": facts.method_name,
            "calibration": facts.calibration,
            "parties": [
                {
                    "name": p.name,
                    "n_records": p.n_records,
                    "epsilon": p.epsilon,
                    "delta": p.delta,
                    "bytes": p.bytes_sent,
                }
                for p in facts.parties
            ],
            "classes": list(facts.classes),
            "coefficients": {row.label: row.estimate for row in facts.coefficients},
            "standard_errors": errors,
            "table": [row.as_dict() for row in facts.coefficients],
            "log_likelihood": None if facts.fit is None else facts.fit.log_likelihood,
            "guarantee": model.guarantee_.as_dict() if model.guarantee_.is_private else None,
            "is_private": facts.is_private,
            "rounds": facts.traffic.rounds,
            "bytes": facts.traffic.bytes_total,
            "seconds": facts.seconds,
            "metrics": next(iter(model.metrics_.values()), None),
            "settings": dict(facts.settings),
            "notices": list(facts.notices),
            "verdict": list(verdict_lines(facts, model.metrics_)),
        }
    )
    assert isinstance(result, dict)
    return dict(result)
