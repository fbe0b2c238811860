"""`tacit demo`: three hospitals, one question, several answers side by side; in a minute, with nothing to set up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, folder, number, out

if TYPE_CHECKING:
    from tacit.data.schema import Schema
    from tacit.data.table import Table
    from tacit.methods import Method
    from tacit.report.comparison import ComparisonEntry

TITLE = "Three hospitals learn which tumours are malignant"
HOSPITALS = ("screening", "county", "oncology")
EPSILONS = (0.3, 1.0, 3.0)
REPEATS = 10
TEST_SHARE = 0.3


def demo(
    out_dir: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write the report.")] = Path("demo"),
    epsilon: Annotated[
        list[float] | None,
        typer.Option(parser=number, metavar="E", help="A promise of the private method; repeatable."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=2, max=100, help="How often all of it is done, for the error bars.")
    ] = REPEATS,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Let three simulated hospitals learn together, exactly and privately, and compare.

    The data are the 569 tumours of the Wisconsin breast cancer study, which come with scikit-learn. A screening clinic
    sees mostly small ones, an oncology clinic large ones, a county hospital those between: alone, none of them learns
    what a tumour looks like that it rarely sees. Each repeat keeps other records for testing, and draws other noise.

    Examples:

      tacit demo

      tacit demo --out results --epsilon 0.5 --epsilon 4 --repeats 20
    """
    from rich.progress import Progress

    from tacit.report.comparison import ComparisonEntry, ComparisonReport
    from tacit.storage import write_json
    from tacit.studies.result import result_of

    methods = methods_to_compare(epsilon or EPSILONS)
    for model in methods.values():
        model.guarantee  # noqa: B018  # refuses a bad epsilon before anything runs
    folder(out_dir)
    runs: dict[str, list[Method]] = {label: [] for label in methods}
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("learning", total=repeats * len(methods))
        for repeat in range(repeats):
            for label, model in fitted(methods_to_compare(epsilon or EPSILONS), repeat):
                runs[label].append(model)
                progress.update(task, advance=1, description=label)
    figures = {label: [model.metrics_["test data"] for model in models] for label, models in runs.items()}
    entries = [ComparisonEntry.of_runs(label, runs[label][0].facts_, figures[label]) for label in runs]
    report = ComparisonReport(TITLE, entries, lead_of({entry.label: entry for entry in entries}, repeats))
    page = out_dir / "report.html"
    report.save(page)
    results = {label: result_of(models[0]) for label, models in runs.items()}
    for entry in entries:
        results[entry.label]["mean_accuracy"] = None if entry.metrics is None else entry.metrics.accuracy
        results[entry.label]["accuracy_spread"] = entry.accuracy_spread
    write_json(out_dir / "report.json", results)
    if json_output:
        print(json.dumps(results))
        return
    out.print(report.table_text(), markup=False, soft_wrap=True)
    err.print(f"open {page} in a browser for plots, and for who saw what", markup=False)


def methods_to_compare(epsilons: Sequence[float]) -> dict[str, Method]:
    """Everything that the demo runs, by the label under which it is shown."""
    from tacit.methods import Averaging, Local, Pooled, PrivateNewton, PrivLogit

    alone: dict[str, Method] = {f"{name} alone": Local(l2=1.0, party=name) for name in HOSPITALS}
    together: dict[str, Method] = {"together, data shared": Pooled(l2=1.0)}
    together["together, exact secure sums"] = PrivLogit(l2=1.0, secure="sums")
    for epsilon in sorted(epsilons, reverse=True):
        together[f"together, private, epsilon {epsilon:g}"] = PrivateNewton(epsilon=epsilon)
    document = f"as a document prints it, {min(epsilons):g}"
    return alone | together | {document: Averaging(epsilon=min(epsilons), calibration="paper")}


def fitted(methods: dict[str, Method], repeat: int) -> Iterator[tuple[str, Method]]:
    """Each method, fitted to the hospitals of one repeat and measured on its test records."""
    from tacit.federation.federation import Federation
    from tacit.federation.policy import Policy

    tables, test = hospitals(repeat)
    parties = Federation.from_tables(
        tables, policy=Policy(not_private=["pooled", "local", "privlogit", "averaging"]), study="demo"
    )
    for label, model in methods.items():
        model.fit(parties)
        model.evaluate(test)
        yield label, model


def lead_of(entries: dict[str, ComparisonEntry], repeats: int) -> str:
    """What the comparison shows, in words."""

    def accuracy(label: str) -> float:
        metrics = entries[label].metrics
        return 0.0 if metrics is None else 100 * metrics.accuracy

    alone = [accuracy(f"{name} alone") for name in HOSPITALS]
    private = [label for label in entries if "private" in label]
    told = ", ".join(f"{accuracy(label):.0f} % at {label.rpartition(', ')[2]}" for label in private)
    return (
        f"Alone, the hospitals are right about {min(alone):.0f} to {max(alone):.0f} % of all tumours. Together they "
        f"reach {accuracy('together, data shared'):.0f} %. They need not show a record to anybody for that: sums that "
        f"are added up under encryption give the same. With differential privacy: {told}. With so few records a small "
        f"epsilon costs a lot, and with more it costs less (docs/accuracy.md). Means of {repeats} repeats; +- is one "
        f"standard deviation."
    )


def schema() -> Schema:
    """The columns, with bounds from what is known of such images, not from the records."""
    from tacit.data.schema import Numeric, Schema, Target

    return Schema(
        features=(
            Numeric("area", 100, 4500),  # of the largest nuclei, in pixels
            Numeric("texture", 10, 50),  # spread of grey values
            Numeric("smoothness", 0.05, 0.25),  # how much a nucleus' radius varies
        ),
        target=Target("tumour", ("benign", "malignant")),
        norm_bound=1.0,
    )


def hospitals(repeat: int = 0) -> tuple[dict[str, Table], Table]:
    """The hospitals' tables, and one to test on: records of all three kinds of tumour."""
    import numpy as np
    import pandas as pd
    from sklearn.datasets import load_breast_cancer

    from tacit.data.table import Table
    from tacit.rand import Rng

    data = load_breast_cancer(as_frame=True)
    frame = pd.DataFrame(
        {
            "area": data.data["worst area"],
            "texture": data.data["worst texture"],
            "smoothness": data.data["worst smoothness"],
            "tumour": data.target.map({0: "malignant", 1: "benign"}),
        }
    )
    chance = Rng.seeded(repeat).generator()  # who goes to which hospital: a simulation's affair, and no release
    order = chance.permutation(len(frame))
    n_test = round(TEST_SHARE * len(frame))
    test, rest = frame.iloc[order[:n_test]], frame.iloc[order[n_test:]]
    size = data.data["mean radius"].iloc[order[n_test:]].to_numpy() + chance.normal(0, 2, len(rest))
    place = np.digitize(size, np.quantile(size, [1 / 3, 2 / 3]))
    tables = {name: Table.from_frame(rest[place == k], schema(), name=name) for k, name in enumerate(HOSPITALS)}
    return tables, Table.from_frame(test, schema(), name="test")
