"""Plain facts about one run: what any method fills in, and all that a report knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from tacit.errors import SettingError
from tacit.privacy.guarantee import Guarantee
from tacit.report.identity import ColumnFacts, StudyFacts
from tacit.report.joint import JointTest
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
    null_log_likelihood: float | None = None  # of the model without features
    degrees: int = 0  # how many parameters that model lacks

    @property
    def ratio_statistic(self) -> float | None:
        """The likelihood-ratio statistic against the model without features.

        Of a penalised fit it is smaller than that of the largest likelihood, so that its test errs on the safe side.
        """
        if self.log_likelihood is None or self.null_log_likelihood is None or not self.degrees:
            return None
        return max(0.0, 2 * (self.log_likelihood - self.null_log_likelihood))

    @property
    def ratio_p(self) -> float | None:
        """How likely so large a statistic is where no feature matters (chi-squared)."""
        from scipy.special import gammaincc

        return None if self.ratio_statistic is None else float(gammaincc(self.degrees / 2, self.ratio_statistic / 2))

    @property
    def mcfadden(self) -> float | None:
        """McFadden's pseudo-R2, 1 - l / l0."""
        if self.ratio_statistic is None or not self.null_log_likelihood or self.log_likelihood is None:
            return None
        return 1 - self.log_likelihood / self.null_log_likelihood

    @property
    def nagelkerke(self) -> float | None:
        """Nagelkerke's pseudo-R2: that of Cox and Snell over the most that it can be."""
        if self.ratio_statistic is None or not self.n_records or not self.null_log_likelihood:
            return None
        return math.expm1(-self.ratio_statistic / self.n_records) / math.expm1(
            2 * self.null_log_likelihood / self.n_records
        )


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """One finished run; `verdict` is what its method found the model to be worth, and is the first line of every text.

    `settings` are what the method was made with, and `effective` what the run made of those that were left to it.
    `study` is known where a study was run; `finished` is a time in UTC, and `version` that of the software.

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
    effective: Mapping[str, object] = field(default_factory=dict)
    columns: tuple[ColumnFacts, ...] = ()
    joint: tuple[JointTest, ...] = ()
    study: StudyFacts | None = None
    finished: str = ""
    version: str = ""

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
    def modelled(self) -> str:
        """What the coefficients are about, in words: whose odds, against what."""
        if len(self.classes) == 2:
            return f"the odds of {self.target} = {self.classes[1]} against {self.classes[0]}"
        return f"the log-probability of each class of {self.target} against the mean over the classes"

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
    return {one.name: _to_json(getattr(facts, one.name)) for one in fields(facts)}


def facts_from_dict(document: Mapping[str, Any]) -> RunFacts:
    """The facts that `facts_to_dict` wrote; a `KeyError`, `TypeError` or `ValueError` if they are damaged."""
    values = {name: _from_json(value) for name, value in document.items()}
    guarantee, fit, study = values["guarantee"], values["fit"], values.get("study")
    return RunFacts(
        **values
        | {
            "study": None if study is None else StudyFacts(**study),
            "columns": tuple(_column_from(column) for column in values.get("columns", ())),
            "joint": tuple(JointTest(**test) for test in values.get("joint", ())),
            "classes": tuple(values["classes"]),
            "notices": tuple(values["notices"]),
            "parties": tuple(PartyFacts(**party) for party in values["parties"]),
            "coefficients": tuple(row_from_dict(row) for row in values["coefficients"]),
            "traffic": TrafficFacts(**values["traffic"]),
            "guarantee": None if guarantee is None else Guarantee(**guarantee),
            "fit": None if fit is None else FitFacts(**fit),
        }
    )


def _column_from(document: Mapping[str, Any]) -> ColumnFacts:
    return ColumnFacts(**{**document, "levels": tuple(document["levels"]), "terms": tuple(document["terms"])})


def _to_json(value: object) -> object:
    match value:
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case Mapping():
            return {str(key): _to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [_to_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {one.name: _to_json(getattr(value, one.name)) for one in fields(value)}
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
