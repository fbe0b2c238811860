"""Plain facts about one run: what any method fills in, and all that a report knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from tacit.errors import SettingError
from tacit.privacy.guarantee import Guarantee
from tacit.report.row import CoefficientRow, row_from_dict

Calibration = Literal["sound", "paper"]

CALIBRATIONS: tuple[Calibration, ...] = ("sound", "paper")
HEADINGS = ("Parties", "Trust", "Travels", "Revealed", "Privacy", "Assumes", "Cost", "Paper")
NO_PROMISE = "Nothing is promised about any single record."


@dataclass(frozen=True, kw_only=True)
class PartyFacts:
    """What one party gave and spent in the run; an infinite `epsilon` means that no epsilon bounds it."""

    name: str
    n_records: int | None
    epsilon: float
    delta: float
    bytes_sent: int
    releases: int

    @property
    def is_private(self) -> bool:
        """Whether some finite epsilon bounds what the party gave."""
        return math.isfinite(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class TrafficFacts:
    """What travelled: `bytes_up` from the parties, `bytes_down` to them."""

    rounds: int
    messages: int
    bytes_up: int
    bytes_down: int

    @property
    def bytes_total(self) -> int:
        """Bytes in both directions."""
        return self.bytes_up + self.bytes_down


@dataclass(frozen=True, kw_only=True)
class FitFacts:
    """How well the model fits the records that it was learned from; None where that was not computed."""

    log_likelihood: float | None
    aic: float | None
    n_records: int | None


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """One finished run; `verdict` is what its method found the model to be worth, and is the first line of every text.

    Guarantees:
        `is_private` is true only if a finite epsilon is promised, the calibration is not the paper's, the generator was
        not seeded and no party gave a value that no epsilon bounds. Every text, page and plot asks `is_private`, never
        `guarantee` alone.
    """

    method: str
    method_name: str
    calibration: Calibration | None
    settings: Mapping[str, object]
    headings: Mapping[str, str]
    classes: tuple[str, ...]
    target: str
    parties: tuple[PartyFacts, ...]
    guarantee: Guarantee | None
    traffic: TrafficFacts
    seconds: float
    coefficients: tuple[CoefficientRow, ...] = ()
    fit: FitFacts | None = None
    notices: tuple[str, ...] = ()
    seeded: bool = False
    verdict: str | None = None

    def __post_init__(self) -> None:
        """Check the names that come from a closed list."""
        if self.calibration is not None and self.calibration not in CALIBRATIONS:
            raise SettingError(
                f"calibration = {self.calibration!r} is unknown; choose one of {', '.join(CALIBRATIONS)} or None"
            )
        unknown = [heading for heading in self.headings if heading not in HEADINGS]
        if unknown:
            raise SettingError(f"headings has {', '.join(map(repr, unknown))}; the eight are {', '.join(HEADINGS)}")

    @property
    def why_not_private(self) -> tuple[str, ...]:
        """Every reason why nothing is promised; empty if something is."""
        reasons = []
        if self.guarantee is None or not self.guarantee.is_private:
            reasons.append("no epsilon bounds what the result tells about a single record")
        if self.calibration == "paper":
            reasons.append("the noise is as the paper prints it, and that is not proved to keep the promise")
        if self.seeded:
            reasons.append("a seeded generator drew the noise, and whoever knows the seed can subtract it")
        open_handed = [party.name for party in self.parties if not party.is_private]
        if open_handed and self.guarantee is not None and self.guarantee.is_private:
            reasons.append(f"no epsilon bounds what was given by {', '.join(open_handed)}")
        return tuple(reasons)

    @property
    def is_private(self) -> bool:
        """Whether anything is promised, all things considered."""
        return not self.why_not_private

    @property
    def n_records(self) -> int | None:
        """The records of all parties together; None where a party does not tell."""
        counts = [party.n_records for party in self.parties]
        known = [count for count in counts if count is not None]
        if counts and len(known) == len(counts):
            return sum(known)
        return self.fit.n_records if self.fit is not None else None

    @property
    def counted(self) -> str:
        """What numbers of records are numbers of: a person's records count as one where the promise is for persons."""
        return "person" if self.guarantee is not None and self.guarantee.unit == "person" else "record"

    @property
    def promise(self) -> str:
        """What is promised, in plain words."""
        if self.guarantee is None or not self.is_private:
            return NO_PROMISE
        return self.guarantee.plain_words()

    @property
    def has_standard_errors(self) -> bool:
        """Whether any coefficient has a standard error, or is told not to be identified."""
        return any(row.standard_error is not None or not row.identified for row in self.coefficients)

    @property
    def n_not_identified(self) -> int:
        """How many coefficients nothing is known of."""
        return sum(not row.identified for row in self.coefficients)


def facts_to_dict(facts: RunFacts) -> dict[str, object]:
    """The facts as JSON holds them, so that `facts_from_dict` gives them back; infinities are texts."""
    return {field.name: _to_json(getattr(facts, field.name)) for field in fields(facts)}


def facts_from_dict(document: Mapping[str, Any]) -> RunFacts:
    """The facts that `facts_to_dict` wrote; a `KeyError`, `TypeError` or `ValueError` if they are damaged."""
    values = {name: _from_json(value) for name, value in document.items()}
    guarantee, fit = values["guarantee"], values["fit"]
    return RunFacts(
        **values
        | {
            "classes": tuple(values["classes"]),
            "notices": tuple(values["notices"]),
            "parties": tuple(PartyFacts(**party) for party in values["parties"]),
            "coefficients": tuple(row_from_dict(row) for row in values["coefficients"]),
            "traffic": TrafficFacts(**values["traffic"]),
            "guarantee": None if guarantee is None else Guarantee(**guarantee),
            "fit": None if fit is None else FitFacts(**fit),
        }
    )


def _to_json(value: object) -> object:
    match value:
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case Mapping():
            return {str(key): _to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [_to_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: _to_json(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


def _from_json(value: Any) -> Any:
    match value:
        case "inf" | "-inf":
            return float(value)
        case dict():
            return {key: _from_json(item) for key, item in value.items()}
        case list():
            return [_from_json(item) for item in value]
        case _:
            return value
