"""`tacit demo`: three hospitals, one question, several answers side by side; in a minute, with nothing to set up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, folder, number, out, watching

if TYPE_CHECKING:
    from tacit.data.schema import Schema
    from tacit.data.table import Table
    from tacit.methods import Method

TITLE = "Three hospitals learn which tumours are malignant"
SHARES = {"north": 0.5, "south": 0.3, "west": 0.2}
TEST_SHARE = 0.25


def demo(
    out_dir: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write the report.")] = Path("demo"),
    epsilon: Annotated[
        float, typer.Option(parser=number, metavar="E", help="The promise of the private methods.")
    ] = 1.0,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Let three simulated hospitals learn together, exactly and privately, and compare.

    The data are the 569 tumours of the Wisconsin breast cancer study, which come with scikit-learn: a quarter is kept
    for testing, the rest is split among three parties of unequal size.

    Examples:

      tacit demo

      tacit demo --out results --epsilon 4
    """
    from tacit.federation.federation import Federation
    from tacit.federation.policy import Policy
    from tacit.report.comparison import ComparisonEntry, ComparisonReport
    from tacit.storage import write_json
    from tacit.studies.result import result_of

    methods = methods_to_compare(epsilon)
    for model in methods.values():
        model.guarantee  # noqa: B018  # refuses a bad epsilon before anything runs
    folder(out_dir)
    tables, test = hospitals()
    parties = Federation.from_tables(
        tables, policy=Policy(not_private=["pooled", "local", "privlogit", "averaging"]), study="demo"
    )
    entries = []
    with watching(parties, "learning"):
        for label, model in methods.items():
            model.fit(parties)
            model.evaluate(test)
            entries.append(ComparisonEntry(label, model.facts_, model.metrics_["test data"]))
    report = ComparisonReport(TITLE, entries)
    page = out_dir / "report.html"
    report.save(page)
    results = {label: result_of(model) for label, model in methods.items()}
    write_json(out_dir / "report.json", results)
    if json_output:
        print(json.dumps(results))
        return
    out.print(report.table_text(), markup=False, soft_wrap=True)
    err.print(f"open {page} in a browser for plots, and for who saw what", markup=False)


def methods_to_compare(epsilon: float) -> dict[str, Method]:
    """Everything that the demo runs, by the label under which it is shown."""
    from tacit.methods import Averaging, Local, Pooled, PrivateNewton, PrivLogit

    alone: dict[str, Method] = {f"{name} alone": Local(l2=1.0, party=name) for name in SHARES}
    return {
        "pooled (data shared)": Pooled(l2=1.0),
        **alone,
        "secure sums (exact)": PrivLogit(l2=1.0, secure="sums"),
        f"private newton, epsilon {epsilon:g}": PrivateNewton(epsilon=epsilon),
        f"private newton, epsilon {4 * epsilon:g}": PrivateNewton(epsilon=4 * epsilon),
        f"averaging, epsilon {epsilon:g}": Averaging(epsilon=epsilon),
        f"averaging as printed, {epsilon:g}": Averaging(epsilon=epsilon, calibration="paper"),
    }


def schema() -> Schema:
    """The columns, with bounds from what is known of such images, not from the records."""
    from tacit.data.schema import Numeric, Schema, Target

    return Schema(
        features=(
            Numeric("radius", 5, 40),  # of the largest nuclei, in pixels
            Numeric("concave_points", 0, 0.3),  # share of the contour that is concave
            Numeric("texture", 10, 50),  # spread of grey values
        ),
        target=Target("tumour", ("benign", "malignant")),
        norm_bound=1.0,
    )


def hospitals() -> tuple[dict[str, Table], Table]:
    """The hospitals' tables, and one to test on."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer

    from tacit.data.table import Table
    from tacit.rand import Rng

    data = load_breast_cancer(as_frame=True)
    frame = pd.DataFrame(
        {
            "radius": data.data["worst radius"],
            "concave_points": data.data["worst concave points"],
            "texture": data.data["worst texture"],
            "tumour": data.target.map({0: "malignant", 1: "benign"}),
        }
    )
    frame = frame.iloc[Rng.seeded(0).permutation(len(frame))]
    n_test = round(TEST_SHARE * len(frame))
    test, rest = frame.iloc[:n_test], frame.iloc[n_test:]
    tables, start, share = {}, 0, 0.0
    for name, part in SHARES.items():
        share += part
        end = round(share * len(rest))
        tables[name] = Table.from_frame(rest.iloc[start:end], schema())
        start = end
    return tables, Table.from_frame(test, schema())
