"""A study's result: what it is worth, its table and pictures, downloads, a citation, and the next study."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tacit.daemon.coordinator.study_store import StudyVersion
from tacit.data.table import Table
from tacit.errors import TacitError
from tacit.methods import Method, restored
from tacit.methods.model_file import ModelFile
from tacit.report.facts import PartyFacts
from tacit.report.number import byte_count, duration, number
from tacit.report.page import lead
from tacit.report.plots import calibration_plot, forest_plot, roc_plot
from tacit.report.row import NOT_IDENTIFIED, CoefficientRow
from tacit.report.verdict import verdict_lines
from tacit.studies.next_study import next_study
from tacit.web.account import Account
from tacit.web.chart import chart
from tacit.web.coordinator.api import result_file, results_of
from tacit.web.coordinator.permission import check_member, desk_of, may_change, seen_version
from tacit.web.form import go_to, needs, once, read_form
from tacit.web.page import show

router = APIRouter()
Reader = Annotated[Account | None, Depends(check_member)]
Researcher = Annotated[Account, Depends(needs("researcher"))]

DOWNLOADS = {
    "model.json": "The model, for Tacit and Python",
    "model.onnx": "ONNX, for other programs",
    "coefficients.csv": "Coefficients, for a spreadsheet",
    "report.html": "The whole report",
    "result.json": "All figures, for scripts",
    "study.toml": "The study file",
}
_MEASURED = "measured"  # what `measure` keeps


@router.get("/studies/{study}/result")
async def result_page(request: Request, account: Reader, study: str, version: int | None = None) -> Response:
    """The result of a study."""
    found = seen_version(request, study, version)
    model = model_of(request, found)
    facts = model.facts_
    values: dict[str, Any] = {
        "study": found,
        "verdict": _verdict(request, found, model),
        "promise": facts.promise,
        "figures": _figures(model),
        "rows": [_row(row) for row in facts.coefficients],
        "has_classes": any(row.class_name is not None for row in facts.coefficients),
        "forest": chart(forest_plot(facts.coefficients, figure_id="forest")) if facts.coefficients else None,
        "parties": [_given(party) for party in facts.parties],
        "measured": _measured(request, found),
        "may_measure": may_change(account, found),
        "notices": facts.notices,
        "downloads": [(name, DOWNLOADS[name]) for name in DOWNLOADS if name in results_of(request, found)],
        "citation": citation(found, model),
        "may_continue": account is not None and account.may("researcher"),
    }
    return show(request, "coordinator/result.html.j2", **values)


@router.get("/studies/{study}/result/{name}")
async def download(request: Request, account: Reader, study: str, name: str, version: int | None = None) -> Response:
    """One of the files of a result: the same bytes as scripts get."""
    return result_file(request, seen_version(request, study, version), name)


@router.post("/studies/{study}/continue")
async def continue_study(request: Request, account: Researcher, study: str) -> Response:
    """A new study that starts from the model of this one."""
    found, typed = seen_version(request, study), await read_form(request)
    model = model_of(request, found)
    try:
        text = next_study(found.read(), model)
    except TacitError as error:
        return go_to(request, f"/studies/{study}/result", str(error), "bad")
    studies = desk_of(request).studies
    place = once(request, typed, lambda: f"/studies/{studies.create(account.name, text, builds_on=study).study}/edit")
    return go_to(request, place, "This draft starts from the public model of the study before. Change what you like.")


@router.post("/studies/{study}/measure")
async def measure(request: Request, account: Researcher, study: str) -> Response:
    """Measure the model on records that its owner may see; of them the figures and pictures are kept, nothing else."""
    found, typed = seen_version(request, study), await read_form(request)
    if not may_change(account, found):
        raise HTTPException(404)
    model, place = model_of(request, found), f"/studies/{study}/result"
    try:
        pictures = await asyncio.to_thread(measured_pictures, model, typed.get("records", ""))
    except TacitError as error:
        return go_to(request, place, str(error), "bad")
    desk_of(request).studies.attach(found, _MEASURED, json.dumps(pictures).encode())
    return go_to(request, place, "Measured. The records were not kept.")


def measured_pictures(model: Method, records: str) -> dict[str, Any]:
    """What the model is worth on these records: sentences, an ROC curve and its calibration."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test-records.csv"
        path.write_text(records, encoding="utf-8")
        figures = model.evaluate(Table.from_file(path, model.schema_))
    metrics = {"test records": figures}
    drawn = {
        "roc": roc_plot(metrics, figure_id="roc"),
        "calibration": calibration_plot(metrics, figure_id="calibration"),
    }
    return {
        "verdict": list(verdict_lines(model.facts_, model.metrics_)),
        "pictures": {name: picture for name, picture in drawn.items() if picture},
    }


def _kept(request: Request, version: StudyVersion) -> dict[str, Any]:
    content = desk_of(request).studies.attachment(version, _MEASURED)
    kept: dict[str, Any] = {} if content is None else json.loads(content)
    return kept


def _measured(request: Request, version: StudyVersion) -> dict[str, Markup]:
    return {name: chart(svg) for name, svg in _kept(request, version).get("pictures", {}).items()}


def _verdict(request: Request, version: StudyVersion, model: Method) -> list[str]:
    told: list[str] = _kept(request, version).get("verdict", [])
    return told or list(verdict_lines(model.facts_, model.metrics_)) or [lead(model.facts_)]


def _given(party: PartyFacts) -> list[str]:
    records = "not told" if party.n_records is None else f"{party.n_records:,}"
    return [
        party.name,
        records,
        f"{party.epsilon:.4g}" if party.is_private else "NOT PRIVATE",
        byte_count(party.bytes_sent),
    ]


def model_of(request: Request, version: StudyVersion) -> Method:
    """The fitted model of a version; 404 if it has none yet."""
    content = desk_of(request).studies.attachment(version, "model.json")
    if content is None:
        raise HTTPException(404, "This study has no result yet.")
    return restored(ModelFile.parse(content, "the model"), "the model")


def citation(version: StudyVersion, model: Method) -> str:
    """How to cite a result: what was learned, by whom, when, and by which digest it is found again."""
    year = time.strftime("%Y", time.gmtime(version.changed))
    n_parties = len(model.facts_.parties)
    return (
        f"{version.author} ({year}). {version.name}, version {version.number}: a model of {model.facts_.target} "
        f"learned by {model.name} from {n_parties} parties with Tacit. Study digest sha256:{version.digest}."
    )


def _figures(model: Method) -> list[tuple[str, str]]:
    facts = model.facts_
    figures = [(f"{len(facts.parties)}", "parties")]
    if facts.n_records is not None:
        figures.append((f"{facts.n_records:,}", "records, which stayed where they are"))
    if facts.is_private and facts.guarantee is not None:
        figures.append((f"{facts.guarantee.epsilon:g}", f"epsilon, for each {facts.guarantee.unit}"))
    figures += [
        (f"{facts.traffic.rounds}", "rounds"),
        (byte_count(facts.traffic.bytes_total), "travelled"),
        (duration(facts.seconds), "from first to last question"),
    ]
    return figures


def _row(row: CoefficientRow) -> dict[str, str]:
    if not row.identified:
        return {"term": row.label, "odds": NOT_IDENTIFIED, "interval": "", "estimate": "", "p": ""}
    interval = f"{number(row.odds_low)} to {number(row.odds_high)}" if row.odds_low is not None else "-"
    return {
        "term": row.label,
        "odds": number(row.odds_ratio),
        "interval": interval,
        "estimate": number(row.estimate),
        "p": "-" if row.p is None else ("< 0.001" if row.p < 0.001 else f"{row.p:.3f}"),
    }
