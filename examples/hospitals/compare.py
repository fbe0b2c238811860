"""Hold what the processes found against the same study in one process.

    python examples/hospitals/compare.py FOLDER

PrivLogit must give the same coefficients up to 1e-8. PrivateNewton adds noise of its own each time, so its coefficients
must lie among those of repeated runs: no further from their mean than 5 of their standard deviations.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tacit
from tacit.federation.federation import Federation
from tacit.methods import METHODS
from tacit.studies.run import method_of
from tacit.studies.study import Study

EXACT = 1e-8
MOST_DEVIATIONS = 5.0
N_RUNS = 30


def parties_of(study: Study, folder: Path) -> Federation:
    """The same hospitals, in this process."""
    files = {name: folder / "data" / f"{name}.csv" for name in study.federation.parties or ()}
    policy = tacit.Policy(not_private=["privlogit"])
    return Federation.from_files(study.schema, files, policy=policy, study=study.name)


def coefficients(model: tacit.PrivLogit | tacit.PrivateNewton) -> np.ndarray:
    return np.concatenate([model.coef_.ravel(), model.intercept_.ravel()])


def main(folder: Path) -> int:
    wrong = 0
    for name in ("privlogit", "private-newton"):
        study = Study.read(folder / f"{name}.toml", known_methods=METHODS)
        found = coefficients(tacit.load(folder / f"results-{name}" / "model.json"))
        parties = parties_of(study, folder)
        if name == "privlogit":
            difference = float(np.max(np.abs(found - coefficients(method_of(study).fit(parties)))))
            is_well = difference <= EXACT
            print(f"{name}: largest difference from the run in one process {difference:.1e} (at most {EXACT:g})")
        else:
            runs = np.array([coefficients(method_of(study).fit(parties)) for _ in range(N_RUNS)])
            deviations = np.abs(found - runs.mean(axis=0)) / runs.std(axis=0, ddof=1)
            is_well = float(deviations.max()) <= MOST_DEVIATIONS
            print(
                f"{name}: at most {deviations.max():.1f} standard deviations from the mean of {N_RUNS} runs in one "
                f"process, {np.sqrt(np.mean(deviations**2)):.2f} on average (1 is expected)"
            )
        wrong += not is_well
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
