"""What a method brings home from the parties, and what a reader of its report should know besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.federation.traffic import Traffic
from tacit.models.inference import Inference
from tacit.report.facts import TrafficFacts
from tacit.unit import Unit

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a method brings home from the parties, in encoded units.

    Attributes:
        coef: of shape (1, d) for two classes, (C, d) for more; None if the model is not linear.
        intercept: of shape (1,) or (C,); None if the model is not linear.
        inference: estimates with their own standard errors and intervals, in original units, and the likelihood; a
            row whose standard error is infinite is not identified. `coef` may be another estimate, for prediction.
        notices: what a reader of the report should know.
        verdict: one sentence on what the model is worth, where the method can tell; every text begins with it.
    """

    coef: Floats | None
    intercept: Floats | None
    inference: Inference | None = None
    notices: tuple[str, ...] = ()
    verdict: str | None = None


def weighing_notices(unit: Unit, *, has_intervals: bool) -> tuple[str, ...]:
    """What follows for a reader where a unit's records weigh 1 together.

    Intervals count the sampling error of one record a unit. Let s_i be the scores of a unit's m records at the true
    parameter, which have the mean 0. Var(sum s_i / m) <= sum Var(s_i) / m in the order of matrices, by Jensen's
    inequality and whatever they have to do with each other. The right side is what is counted.
    """
    if unit == "record":
        return ()
    told = f"The {unit} is the unit: of m records of one {unit} each weighs 1/m, and estimates are those of that fit."
    if not has_intervals:
        return (told,)
    many = "persons" if unit == "person" else "parties"
    return (
        f"{told} Intervals take {many} for the sample, one from another independent. Records of one {unit} may depend "
        f"on each other; where they do not, intervals are wider than they need be",
    )


def offer_notices(offers: Mapping[str, float], shares: Mapping[str, float]) -> tuple[str, ...]:
    """Which parties offered less than was asked, and what follows for the model."""
    if not offers:
        return ()
    told = ", ".join(f"{name} epsilon {offer:g} (weight {shares[name]:.3g})" for name, offer in offers.items())
    return (
        f"Less than was asked was offered by {told}. Their records count with that weight, and estimates are those of "
        f"the fit with these weights",
    )


def notices_of(learned: Learned, unit: Unit, offers: Mapping[str, float], plan: Any) -> tuple[str, ...]:
    """All that a reader of the report should know besides."""
    weighing = weighing_notices(unit, has_intervals=learned.inference is not None)
    return (*learned.notices, *weighing, *offer_notices(offers, plan.cohort.shares if offers else {}))


def effective_settings(settings: Mapping[str, object], plan: Any, delta: float) -> dict[str, object]:
    """What a run made of the settings that were left to the method, as far as its plan tells."""
    places = (plan, getattr(plan, "cohort", None), getattr(plan, "promise", None))
    found: dict[str, object] = {}
    for name in (name for name, value in settings.items() if value is None):
        found[name] = next((value for place in places if (value := getattr(place, name, None)) is not None), None)
    if "delta" in found:
        found["delta"] = delta
    if "l2" in found and found["l2"] is None and hasattr(plan, "l2_mean"):
        found["l2"] = plan.l2_mean * plan.cohort.n_units  # a plan has that of the mean over records
    return {name: value for name, value in found.items() if isinstance(value, bool | int | float | str | tuple)}


def traffic_facts(traffic: Traffic) -> TrafficFacts:
    """What travelled, for a report."""
    return TrafficFacts(
        rounds=traffic.rounds,
        messages=traffic.messages,
        bytes_up=traffic.bytes_up,
        bytes_down=traffic.bytes_down,
    )
