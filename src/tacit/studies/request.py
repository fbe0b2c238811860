"""What a study asks for beside its question: how private the answer must be, and who is to give it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from itertools import filterfalse

from tacit.errors import SettingError, StudyError
from tacit.federation.nats.subject import check_name
from tacit.privacy.guarantee import RELATIONS, UNITS, Relation, Unit, check_delta, check_epsilon
from tacit.visible import unseen

PRIVACY_KEYS = ("epsilon", "delta", "unit", "relation", "person")


@dataclass(frozen=True, kw_only=True)
class PrivacyRequest:
    """The differential privacy that the study asks for; without a `delta` the method chooses (or needs none).

    `person` is the column of a party's data, no feature, that says whose a record is: the promise is then for persons.
    """

    epsilon: float
    delta: float | None = None
    unit: Unit = "record"
    relation: Relation = "replace-one"
    person: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Plain values. Omit `person` where there is none, so that older studies keep their digest."""
        form = asdict(self)
        return form if self.person is not None else {key: value for key, value in form.items() if key != "person"}

    def __post_init__(self) -> None:
        """Refuse what no mechanism can keep."""
        try:
            check_epsilon(self.epsilon, "privacy.epsilon")
            if self.delta:  # None takes the public rule, 0 asks for pure epsilon
                check_delta(self.delta, "privacy.delta")
        except SettingError as error:
            raise StudyError(str(error)) from error
        if self.unit not in UNITS:
            raise StudyError(f"privacy.unit = {self.unit!r} is unknown; choose one of {', '.join(UNITS)}")
        if self.relation not in RELATIONS:
            raise StudyError(f"privacy.relation = {self.relation!r} is unknown; choose one of {', '.join(RELATIONS)}")
        if self.unit == "person" and not (self.person or "").strip():
            raise StudyError("privacy.unit = 'person' needs privacy.person: the column that says whose a record is")
        if self.unit != "person" and self.person is not None:
            raise StudyError(
                f"privacy.person = {self.person!r} is for privacy.unit = 'person', and the unit is {self.unit!r}; "
                f"leave one of the two out"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))


@dataclass(frozen=True, kw_only=True)
class FederationRequest:
    """Who is asked, how many must answer and in what time, and how many may pool what they see.

    Attributes:
        quorum: with how few parties a run begins, and goes on; None: with all that are named, or, where none are named,
            with all whom the owners accepted, and with nobody else.
        deadline_seconds: how long an answer is waited for.
        colluders: how many parties may pool what they see; None: the method's default.
        parties: who is asked; None: everybody.
        dropouts: how many of the parties that began may be missing in a round without its being asked anew; the noise
            then counts on the others alone. Never so many that fewer than the quorum are left; needs a quorum.
    """

    quorum: int | None = None
    deadline_seconds: float = 60.0
    colluders: int | None = None
    parties: tuple[str, ...] | None = None
    dropouts: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that contradict each other."""
        if self.quorum is not None and self.quorum < 1:
            raise StudyError(f"federation.quorum = {self.quorum} must be at least 1")
        if self.colluders is not None and self.colluders < 0:
            raise StudyError(f"federation.colluders = {self.colluders} must be at least 0")
        if self.dropouts < 0:
            raise StudyError(f"federation.dropouts = {self.dropouts} must be at least 0")
        if self.dropouts and self.quorum is None:
            raise StudyError(
                f"federation.dropouts = {self.dropouts} needs a federation.quorum: without one every party is in every "
                f"round"
            )
        if not 0 < self.deadline_seconds < math.inf:
            raise StudyError(f"federation.deadline_seconds = {self.deadline_seconds} must be positive and finite")
        object.__setattr__(self, "deadline_seconds", float(self.deadline_seconds))
        if self.parties is not None:
            self._check_parties(self.parties)

    def as_dict(self) -> dict[str, object]:
        """Plain values. Omit `dropouts` when 0, so that older studies keep their digest."""
        form = asdict(self)
        return form if self.dropouts else {key: value for key, value in form.items() if key != "dropouts"}

    def everybody(self, accepted: Collection[str]) -> frozenset[str] | None:
        """Who must be in a run, no more and no fewer, if these were accepted; None where a quorum suffices."""
        return None if self.quorum is not None else frozenset(self.parties or accepted)

    def dropouts_among(self, n_parties: int) -> int:
        """How many of the parties that began may be missing in a round."""
        return max(0, min(self.dropouts, n_parties - (self.quorum or n_parties)))

    def _check_parties(self, parties: tuple[str, ...]) -> None:
        n_parties = len(parties)
        doubles = sorted({name for name in parties if parties.count(name) > 1})
        if doubles:
            raise StudyError(f"federation.parties has {', '.join(map(repr, doubles))} more than once; name each once")
        for name in filterfalse(unseen, parties):  # what nobody sees in a name, the study itself refuses
            try:
                check_name(name, "federation.parties:")
            except SettingError as error:
                raise StudyError(str(error)) from None
        if not parties:
            raise StudyError("federation.parties is empty; name the parties, or leave the key out")
        if self.quorum is not None and self.quorum > n_parties:
            raise StudyError(
                f"federation.quorum = {self.quorum} can never be met by the {n_parties} parties in federation.parties; "
                f"give at most {n_parties}"
            )
        if self.quorum is not None and self.dropouts > n_parties - self.quorum:
            raise StudyError(
                f"federation.dropouts = {self.dropouts} of the {n_parties} parties in federation.parties leaves fewer "
                f"than the quorum of {self.quorum}; lower federation.quorum, or give at most {n_parties - self.quorum}"
            )
        if self.colluders is not None and self.colluders >= n_parties:
            raise StudyError(
                f"federation.colluders = {self.colluders} leaves nobody honest among the {n_parties} parties in "
                f"federation.parties; give at most {n_parties - 1}"
            )


def checked_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """A copy of a method's settings, as a study file can hold them: text, numbers, truth values, lists and tables."""
    for key in settings:
        if key in PRIVACY_KEYS:
            raise StudyError(f"method.{key} belongs in the [privacy] table, where every party looks for it")
    return {key: _checked(f"method.{key}", value) for key, value in settings.items()}


def _checked(path: str, value: object) -> object:
    match value:
        case float() if math.isnan(value):
            raise StudyError(f"{path} is nan, which is no setting; give a number")
        case bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_checked(path, item) for item in value]
        case dict():
            return {key: _checked(f"{path}.{key}", item) for key, item in value.items()}
        case _:
            raise StudyError(f"{path} is a {type(value).__name__}; a setting is a text, a number, a list or a table")
