"""A fitted model's result: one JSON object, and the four files that every program writes which fits one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tacit.methods import Method
from tacit.report.plain import plain
from tacit.report.verdict import verdict_lines
from tacit.storage import write_json

RESULT_FILES = ("model.json", "report.html", "report.txt", "result.json")


def result_of(model: Method, extra: Mapping[str, object] | None = None) -> dict[str, object]:
    """A fitted model as one JSON object; `extra` are further facts of the run, which come first."""
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
    return {**(extra or {}), **result}


def write_result(model: Method, directory: Path, extra: Mapping[str, object] | None = None) -> None:
    """Write `RESULT_FILES` into a folder."""
    model.save(directory / "model.json")
    model.report.save(directory / "report.html")
    model.report.save(directory / "report.txt")
    write_json(directory / "result.json", result_of(model, extra))
