"""A study as a notebook shows it."""

from __future__ import annotations

from html import escape

from tacit.report.identity import column_facts
from tacit.studies.study import Study


def study_html(study: Study) -> str:
    """Name, purpose, target, promise and columns; texts of a study are text, whatever they contain."""
    target, privacy = study.schema.target, study.privacy
    promise = "none asked" if privacy is None else f"epsilon {privacy.epsilon:g} for each {privacy.unit}"
    facts = {
        "Predicts": f"{target.name} ({', '.join(target.classes)})",
        "Privacy": promise,
        "Method": study.method or "the default",
        "Digest": study.digest()[:16],
    }
    head = "".join(f"<li>{escape(name)}: {escape(value)}</li>" for name, value in facts.items())
    rows = "".join(
        f"<tr><td>{escape(one.name)}</td><td>{escape(one.values)}</td><td>{escape(one.compared)}</td></tr>"
        for one in column_facts(study.schema)
    )
    return (
        f"<div><strong>Study {escape(study.name)}</strong><p>{escape(study.purpose)}</p><ul>{head}</ul>"
        f"<table><thead><tr><th>feature</th><th>values</th><th>a coefficient is for</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )
