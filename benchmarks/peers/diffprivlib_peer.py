"""diffprivlib's logistic regression, in an environment of its own: it needs an older scikit-learn than ours.

`make peers` makes that environment. This file is both sides: imported, it starts a worker there; run there, it fits.
Rows have norm at most 1 and data_norm is 1: for longer rows diffprivlib adds too little noise.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # the other side has neither
    from peers.task import Task

Floats = npt.NDArray[np.float64]
PYTHON = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"


def diffprivlib_scores(task: Task) -> Floats:
    """Log odds on the test rows of its default model; it promises pure epsilon, and delta is not used."""
    worker = _worker(_file(task.X, task.y))
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps({"epsilon": task.epsilon, "seed": task.seed}) + "\n")
    worker.stdin.flush()
    answer = json.loads(worker.stdout.readline())
    _spent.append(answer["cpu_seconds"])
    scores: Floats = task.X_test @ np.array(answer["coef"]) + answer["intercept"]
    return scores


_files: list[tuple[Floats, str]] = []
_spent: list[float] = []


def worker_seconds() -> float:
    """How long the worker's processor has been busy with fits that this process asked for."""
    return sum(_spent)


def _file(X: Floats, y: npt.NDArray[np.int64]) -> str:
    """The file with these rows; only the last rows are known, and kept, so that no others can take their place."""
    if not _files or _files[0][0] is not X:
        with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as file:
            np.savez(file, X=X, y=y)
        _files[:] = [(X, file.name)]
        atexit.register(Path(file.name).unlink, missing_ok=True)
    return _files[0][1]


@lru_cache(maxsize=1)
def _worker(path: str) -> subprocess.Popen[str]:
    if not PYTHON.exists():
        from tacit.errors import SettingError

        raise SettingError(f"{PYTHON} is missing; run `make peers` first, or leave diffprivlib out with --methods")
    worker = subprocess.Popen(
        [str(PYTHON), __file__, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(worker.kill)
    return worker


def serve(path: str) -> None:
    """Fit once for each line of standard input."""
    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    stored = np.load(path)
    X, y = stored["X"], stored["y"]
    for line in sys.stdin:
        asked = json.loads(line)
        before = time.process_time()
        model = LogisticRegression(epsilon=asked["epsilon"], data_norm=1.0, random_state=asked["seed"]).fit(X, y)
        fitted = {"coef": model.coef_[0].tolist(), "intercept": float(model.intercept_[0])}
        print(json.dumps(fitted | {"cpu_seconds": time.process_time() - before}), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
