"""`tacit plan`: what a study would spend and reveal, before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.show import number, out
from tacit.methods import METHODS
from tacit.privacy.event import to_json
from tacit.report.text import who_saw_what_text
from tacit.studies.run import method_of
from tacit.studies.study import Study


def plan(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    method: Annotated[str | None, typer.Option(help="Another method than the study's.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(parser=number, metavar="E", help="Another epsilon than the study's.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Tell what a study would spend and reveal; reads no data.

    Examples:

      tacit plan study.toml

      tacit plan study.toml --method averaging --epsilon 0.5
    """
    asked = Study.read(study, known_methods=METHODS)
    model = method_of(asked, method=method, epsilon=epsilon)
    guarantee = model.guarantee
    schema = asked.schema
    if json_output:
        print(
            json.dumps(
                {
                    "study": asked.name,
                    "method": model.name,
                    "guarantee": guarantee.as_dict() if guarantee.is_private else None,
                    "event": to_json(model.event()),
                    "columns": list(schema.column_names),
                    "radius": schema.radius,
                    "reveals": model.headings(),
                }
            )
        )
        return
    lines = [
        f"Study     {asked.name}: {asked.purpose}",
        f"Predicts  {schema.target.name} ({', '.join(schema.target.classes)})",
        f"From      {len(schema.feature_names)} features, {schema.n_columns} encoded columns",
        f"Method    {model.name}",
        f"Spends    {guarantee.plain_words()}",
        "",
        who_saw_what_text(model.headings()),
    ]
    out.print("\n".join(lines), markup=False, soft_wrap=True)
