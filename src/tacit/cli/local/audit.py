"""`tacit audit`: try to refute a method's promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.console import err, folder, number, out
from tacit.errors import RunError, SettingError
from tacit.unit import Unit

if TYPE_CHECKING:
    from tacit.methods import Method
    from tacit.studies.audit import AuditResult


def audit_command(
    method: Annotated[str, typer.Argument(help="A method; `tacit methods` lists them.")],
    epsilon: Annotated[float, typer.Option(parser=number, metavar="E", help="The promise to refute.")] = 1.0,
    delta: Annotated[
        float | None, typer.Option(parser=number, metavar="D", help="Audit the Gaussian variant, at this delta.")
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="Audit the calibration that the document prints.")] = False,
    unit: Annotated[Unit, typer.Option(help="What is protected: a record, a person or a party.")] = "record",
    replace: Annotated[
        Unit | None, typer.Option(help="In what neighbours differ; the default is what is protected.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs on each of two neighbours; more runs see more.")] = 2000,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write audit.svg and audit.json.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Run a method many times on worst-case neighbours and bound its epsilon from below, with confidence 99.9 %.

    A bound above the promise refutes it: exit status 1. A bound below it proves nothing by itself, so the audit also
    tells whether it would have noticed half the noise.

    Examples:

      tacit audit averaging

      tacit audit averaging --delta 0.01 --runs 10000 --out audit

      tacit audit private-newton --unit person

      tacit audit objective-perturbation --paper
    """
    from rich.progress import Progress

    from tacit.report.curve import audit_plot
    from tacit.report.plain import plain
    from tacit.storage import write_json, write_whole
    from tacit.studies.audit import audit

    wanted: dict[str, Any] = {"epsilon": epsilon}
    if delta is not None:
        wanted["delta"] = delta
    if paper:
        wanted["calibration"] = "paper"
    if unit != "record":
        wanted["unit"] = unit
    model = _method(method, wanted)
    if runs < 40:
        raise SettingError(f"--runs {runs} is too few to show anything; give at least 40, better 2000")
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task(f"auditing {method}", total=None)
        result = audit(
            model,
            runs=runs,
            power=not paper,
            on_progress=lambda d, t: progress.update(task, completed=d, total=t),
            replaced=replace,
        )
    if out_dir is not None:
        folder(out_dir)
        write_whole(out_dir / "audit.svg", audit_plot(bars_of(result), figure_id="audit"))
        write_json(out_dir / "audit.json", plain(result))
    if json_output:
        print(json.dumps(plain(result)))
    else:
        tell(result)
    if not result.passes:
        raise RunError(f"{method}: epsilon is at least {result.epsilon:.2f}, and {epsilon:g} is claimed")


def _method(name: str, wanted: dict[str, Any]) -> Method:
    from tacit.methods import METHODS, make

    if name not in METHODS:
        make(name)  # names the nearest
    known = METHODS[name]._get_param_names()
    for key in wanted:
        if key not in known:
            raise SettingError(f"{name} has no {key} to audit; it promises nothing, or nothing of that kind")
    return make(name, wanted)


def tell(result: AuditResult) -> None:
    """The audit in words."""
    for audited in (*result.as_it_is, *result.half_the_noise):
        noise = "as it is" if audited.noise == 1 else "half the noise"
        verdict = "FLAGGED" if audited.is_flagged else "not refuted"
        out.print(
            f"{audited.neighbours:<28} {noise:<15} epsilon >= {audited.finding.epsilon:.3f}, "
            f"claimed {audited.claimed:g}: {verdict}",
            markup=False,
        )
    if result.half_the_noise:
        would = (
            "would have noticed half the noise"
            if result.has_power
            else "would NOT have noticed half the noise: more runs"
        )
        out.print(f"\nThis audit {would} ({result.as_it_is[0].finding.n_runs:,} runs of each neighbour).", markup=False)


def bars_of(result: AuditResult) -> list[tuple[str, float, float]]:
    """(label, lower bound, claim) for the plot."""
    return [
        (f"{a.neighbours}, {'as it is' if a.noise == 1 else 'half the noise'}", a.finding.epsilon, a.claimed)
        for a in (*result.as_it_is, *result.half_the_noise)
    ]
