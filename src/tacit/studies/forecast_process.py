"""Forecasts in a process of its own, one after the other, which may be killed when nobody waits for one any more.

A question and what comes back are JSON over the pipe: first how far it is, `{"done": 3, "of": 25}`, and last the result
or an error in one line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tacit.data.synthetic import PublicGuess
from tacit.errors import TacitError
from tacit.methods import METHODS
from tacit.report.plain import plain
from tacit.report.verdict import forecast_words
from tacit.secure.center.child import end_with
from tacit.studies.forecast import Outlook, outlook_of
from tacit.studies.forecast_picture import outlook_pictures
from tacit.studies.rehearsal import Rehearsal
from tacit.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class ForecastQuestion:
    """What is to be forecast.

    Attributes:
        text: the study file.
        sizes: the number of records of each party.
        epsilons: at which epsilons, besides the study's own.
        positive_share, auc: guesses of the population, as `tacit plan` takes them.
        repeats: rehearsals at each epsilon.
    """

    text: str
    sizes: Mapping[str, int]
    epsilons: tuple[float, ...]
    positive_share: float | None = None
    auc: float | None = None
    repeats: int = 5


def main(arguments: list[str]) -> None:
    """Answer questions until the pipe closes."""
    pipe = Connection(int(arguments[0]))
    end_with(pipe)
    while True:
        try:
            asked = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        question = ForecastQuestion(**asked | {"epsilons": tuple(asked["epsilons"])})
        try:
            answer: dict[str, object] = {"result": forecast_facts(question, lambda done: _send(pipe, done))}
        except TacitError as error:
            answer = {"error": " ".join(str(error).split())}
        except (ArithmeticError, ValueError, MemoryError) as error:
            answer = {"error": f"this study cannot be rehearsed here ({type(error).__name__}); make it smaller"}
        _send(pipe, answer)


def forecast_facts(question: ForecastQuestion, on_progress: Any) -> dict[str, Any]:
    """The forecast: its numbers, a sentence for each epsilon, and its pictures."""
    study = Study.parse(question.text, "the study", known_methods=METHODS)
    guess = PublicGuess(positive_share=question.positive_share, auc=question.auc)
    plan = Rehearsal(study=study, sizes=question.sizes, guess=guess, repeats=question.repeats)
    outlook = outlook_of(plan, question.epsilons, lambda done, of, what: on_progress({"done": done, "of": of}))
    return {"numbers": plain(outlook), "words": _words(outlook), "pictures": outlook_pictures(outlook)}


def _words(outlook: Outlook) -> list[str]:
    return [
        forecast_words(
            found.epsilon,
            useful=found.is_useful,
            accuracy_gain=found.accuracy_gain.mean,
            log_loss_gain=found.log_loss_gain.mean,
        )
        for found in outlook.forecasts
    ]


def _send(pipe: Connection, message: Mapping[str, object]) -> None:
    pipe.send_bytes(json.dumps(message).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
