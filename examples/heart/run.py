"""Four hospitals fit one model, exactly and privately, without a server.

    python examples/heart/run.py [FOLDER]

The data are the four hospitals of the UCI heart disease study. They are read from the folder that TACIT_DATA names, or
downloaded and checked. The script asserts what it claims.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import tacit
from tacit import datasets as public
from tacit.studies import Study

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    # 1. Each hospital has a file. (Here we write them; in life they are there.)
    files = {path.stem: path for path in public.export("heart_disease", folder)}
    study = Study.read(HERE / "study.toml")

    # 2. A federation in this process: every value still passes the hospitals' guards.
    everything = tacit.Policy(not_private=["pooled", "local"])
    parties = tacit.Federation.from_files(study.schema, files, policy=everything, study=study.name)
    print(parties)

    # 3. The exact fit, the mark to reach: hospitals disclose sums, which their policy must name.
    pooled = tacit.Pooled().fit(parties)
    print(pooled.summary())

    # 4. The private fit: nobody trusts anybody.
    private = tacit.PrivateNewton(epsilon=8.0).fit(parties)
    print(private.guarantee_.plain_words())
    private.report.save(folder / "report.html")

    # 5. What this example claims.
    tables = {name: tacit.Table.from_file(path, study.schema) for name, path in files.items()}
    accuracy = {model.name: score(model, tables) for model in (pooled, private)}
    print(accuracy)
    assert sum(parties.sizes.values()) == 920
    assert accuracy["pooled"] > 0.80
    assert parties.guard("va").spent("heart") == float("inf")  # the exact fit is not private, and the ledger says so
    angina = next(row for row in pooled.facts_.coefficients if row.name == "exercise_angina")
    assert angina.odds_low is not None
    assert angina.odds_low > 1  # angina under exercise predicts disease
    assert private.facts_.is_private


def score(model: tacit.PrivateNewton | tacit.Pooled, tables: dict[str, tacit.Table]) -> float:
    """Accuracy over all hospitals."""
    n = sum(table.n_records for table in tables.values())
    return sum(model.score(table) * table.n_records for table in tables.values()) / n


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
