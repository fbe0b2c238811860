"""A fitted model's result: one JSON object, and the four files that every program writes which fits one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tacit.methods import Method
from tacit.report.identity import StudyFacts
from tacit.report.plain import plain
from tacit.report.verdict import verdict_lines
from tacit.storage import write_json
from tacit.studies.study import Study

RESULT_FILES = ("model.json", "report.html", "report.txt", "result.json")


def result_of(model: Method, extra: Mapping[str, object] | None = None) -> dict[str, object]:
    """A fitted model as one JSON object; `extra` are further facts of the run, which come first."""
    facts = model.facts_
    errors = {row.label: row.standard_error for row in facts.coefficients} if facts.has_standard_errors else None
    result = plain(
        {
            "finished": facts.finished,
            "version": facts.version,
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
            "joint_tests": list(facts.joint),
            "log_likelihood": None if facts.fit is None else facts.fit.log_likelihood,
            "guarantee": model.guarantee_.as_dict() if model.guarantee_.is_private else None,
            "is_private": facts.is_private,
            "rounds": facts.traffic.rounds,
            "bytes": facts.traffic.bytes_total,
            "seconds": facts.seconds,
            "metrics": next(iter(model.metrics_.values()), None),
            "settings": dict(facts.settings),
            "effective_settings": dict(facts.effective),
            "notices": list(facts.notices),
            "verdict": list(verdict_lines(facts, model.metrics_)),
        }
    )
    assert isinstance(result, dict)
    study = {} if facts.study is None else {"study": facts.study.name, "digest": facts.study.digest}
    return {**study, **(extra or {}), **result}


def named_after(model: Method, study: Study) -> Method:
    """The model, whose report now says which study it is of."""
    told = StudyFacts(name=study.name, purpose=study.purpose, digest=study.digest())
    model.facts_ = replace(model.facts_, study=told)
    return model


def write_result(model: Method, directory: Path, extra: Mapping[str, object] | None = None) -> None:
    """Write `RESULT_FILES` into a folder."""
    model.save(directory / "model.json")
    model.report.save(directory / "report.html")
    model.report.save(directory / "report.txt")
    write_json(directory / "result.json", result_of(model, extra))
