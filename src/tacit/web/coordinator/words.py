"""A study in plain words, for people who have not read about differential privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.data.feature import Categorical, Feature, Numeric
from tacit.studies.request import PrivacyRequest
from tacit.studies.stop import EnrolmentRequest, StopRequest
from tacit.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class StudyWords:
    """What a reader of the catalogue wants to know.

    Attributes:
        question: what is to be predicted.
        columns: each column that is used, with what may stand in it.
        promise: how each record is protected.
        in_short: the promise in a few words.
        method: how the model is learned.
        parties: who is asked, and how many must take part.
        looks: when it looks and when it stops; empty if it plans no looks.
    """

    question: str
    columns: Sequence[tuple[str, str]]
    promise: str
    in_short: str
    method: str
    parties: str
    looks: str


def in_words(study: Study) -> StudyWords:
    """The study in plain words."""
    target = study.schema.target
    *others, last = (str(each) for each in target.classes)
    return StudyWords(
        question=f"Predicts {target.name}: {', '.join(others)} or {last}.",
        columns=[(feature.name, _column(feature)) for feature in study.schema.features],
        promise=promise_words(study.privacy),
        in_short="exact sums"
        if study.privacy is None
        else f"epsilon {study.privacy.epsilon:g} per {study.privacy.unit}",
        method=study.method or "the default method for this promise",
        parties=_parties(study),
        looks="" if study.stop is None else _looks(study.stop, study.enrolment),
    )


def promise_words(privacy: PrivacyRequest | None) -> str:
    """What the promise means for one record."""
    if privacy is None:
        return "No noise is added. Only sums over the parties are opened, and they are exact."
    unit = {"record": "one record", "party": "all of one party's records"}.get(privacy.unit, f"one {privacy.unit}")
    if math.isinf(privacy.epsilon):
        return f"Epsilon is infinite: the study promises nothing about {unit}."
    odds = math.exp(privacy.epsilon)
    factor = f"{odds:.3g}" if odds < 1e6 else "over a million"
    return (
        f"Epsilon {privacy.epsilon:g}: whoever sees the result can raise the odds of any guess about {unit} "
        f"by a factor of {factor} at most."
    )


def _column(feature: Feature) -> str:
    if isinstance(feature, Numeric):
        return "a number" if feature.bounds is None else f"a number from {feature.bounds[0]:g} to {feature.bounds[1]:g}"
    labels = [str(each) for each in (feature.categories if isinstance(feature, Categorical) else feature.values)]
    shown = ", ".join(labels[:8]) + (f" and {len(labels) - 8} more" if len(labels) > 8 else "")
    return f"one of {shown}" if labels else "yes or no"


def _parties(study: Study) -> str:
    asked = study.federation
    who = ", ".join(asked.parties) if asked.parties else "every party of the federation"
    return f"{who}; {'all must take part' if asked.quorum is None else f'at least {asked.quorum} must take part'}"


def _looks(stop: StopRequest, enrolment: EnrolmentRequest | None) -> str:
    sizes = "; ".join(f"{n:,}" for n in stop.looks)
    goals = " and ".join(f"{goal.coefficient} is known to {goal.half_width:g}" for goal in stop.wanted)
    end = f"as soon as {goals}, or after the last look" if goals else "after the last look"
    last = "" if enrolment is None or enrolment.until is None else f" Parties may join until {enrolment.until}."
    return f"It looks when {sizes} records are enrolled, and stops {end}.{last}"
