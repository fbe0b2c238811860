"""Run a study's looks in this process, on tables that join one after another: a simulation with real guards.

    result = tacit.fit_in_looks(study, {"north": north, "south": south, "west": west})
    result.model.summary()
    [(outcome.look.number, outcome.reached) for outcome in result.outcomes]

Parties join in the order in which they are given, until a look has its records. One that is never needed pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.methods import Method
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.report.spending import as_ledgers_say
from tacit.studies.looks import (
    Look,
    Reached,
    look_methods,
    look_notices,
    looks_agreed,
    planned_looks,
    reached,
    stop_words,
)
from tacit.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class LookOutcome:
    """A look that took place.

    Attributes:
        look: which.
        sizes: who was in it, with how many records.
        reached: how precise each goal's coefficient, or the AUC, was.
        spent: the epsilon that each party's ledger has for the study after it, as far as it told.
        why: why the study stopped there; empty if it went on.
    """

    look: Look
    sizes: Mapping[str, int]
    reached: tuple[Reached, ...]
    spent: Mapping[str, float]
    why: str = ""

    @property
    def n_records(self) -> int:
        """The records of all who were in it."""
        return sum(self.sizes.values())

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON holds them."""
        return asdict(self)

    @staticmethod
    def from_dict(form: Mapping[str, Any]) -> LookOutcome:
        """What `as_dict` gave."""
        look, found = Look(**form["look"]), tuple(Reached(**one) for one in form["reached"])
        return LookOutcome(look=look, sizes=form["sizes"], reached=found, spent=form["spent"], why=form["why"])


@dataclass(frozen=True, kw_only=True)
class LooksResult:
    """A study that stopped: the model of its last look, and all looks in order."""

    model: Method
    outcomes: tuple[LookOutcome, ...]

    @property
    def why(self) -> str:
        """Why it stopped."""
        return self.outcomes[-1].why


def fit_in_looks(study: Study, tables: Mapping[str, Table], **settings: Any) -> LooksResult:
    """Run the study's looks until one is precise enough, or the last is over.

    Args:
        study: with planned looks (`[stop]`).
        tables: the parties in the order in which they join.
        settings: `policy`, `ledger`, `rng` as in `Federation.from_tables`.

    Raises:
        StudyError: if the study plans no looks.
        SettingError: if the tables have too few records for a look that is due.

    Example:
        >>> import tacit
        >>> data = tacit.datasets.load("readmission")
        >>> text = '''
        ... [study]
        ... name = "readmission"
        ... purpose = "Who comes back?"
        ... [target]
        ... name = "readmitted"
        ... classes = ["no", "yes"]
        ... [[feature]]
        ... name = "emergency"
        ... kind = "binary"
        ... values = ["no", "yes"]
        ... [privacy]
        ... epsilon = 2.0
        ... [federation]
        ... quorum = 2
        ... [stop]
        ... looks = [5000, 7000]
        ... coefficient = "emergency"
        ... half_width = 0.5
        ... '''
        >>> study = tacit.Study.parse(text)
        >>> frames = {name: data.frames[name][["emergency", "readmitted"]] for name in ("north", "south", "west")}
        >>> tables = {name: tacit.Table.from_frame(frame, study.schema) for name, frame in frames.items()}
        >>> result = tacit.fit_in_looks(study, tables)
        >>> len(result.outcomes) in (1, 2)
        True
    """
    methods, planned = look_methods(study).methods, planned_looks(study)
    ledger = settings.pop("ledger", None) or Ledger()
    rng = settings.pop("rng", None) or Rng.system()
    outcomes: list[LookOutcome] = []
    for look, method in zip(planned, methods, strict=True):
        enrolled = _enrolled(tables, look, study.federation.quorum or 1)
        own = rng if look.n_looks == 1 else rng.child(f"look {look.number}")
        parties = Federation.from_tables(enrolled, ledger=ledger, study=study.name, rng=own, **settings)
        parties.look, parties.looks = look.number, looks_agreed(study)
        method.fit(parties)
        spent = parties.engine.spent(study.name, method.guarantee_.delta)
        outcomes.append(outcome_of(study, look, method, spent))
        if outcomes[-1].why:
            return LooksResult(model=method, outcomes=tuple(outcomes))
    raise AssertionError("the last look always stops a study")


def outcome_of(
    study: Study, look: Look, model: Method, spent: Mapping[str, float], *, is_over: bool = False
) -> LookOutcome:
    """What a look came to; its report says so, and counts what ledgers say."""
    found = reached(study.stop, model)
    why = stop_words(look, found, is_over=is_over)
    facts = as_ledgers_say(model.facts_, spent)
    model.facts_ = replace(facts, notices=(*facts.notices, *look_notices(look, why, getattr(model, "auc_", None))))
    if facts.guarantee is not None:
        model.guarantee_ = facts.guarantee
    sizes = {party.name: party.n_records or 0 for party in facts.parties}
    return LookOutcome(look=look, sizes=sizes, reached=found, spent=dict(spent), why=why)


def _enrolled(tables: Mapping[str, Table], look: Look, quorum: int) -> dict[str, Table]:
    """The first parties that have the look's records together, and are as many as a look needs."""
    enrolled: dict[str, Table] = {}
    for name, table in tables.items():
        if len(enrolled) >= quorum and sum(one.n_records for one in enrolled.values()) >= look.n_records:
            break
        enrolled[name] = table
    n_records = sum(table.n_records for table in enrolled.values())
    if n_records < look.n_records or len(enrolled) < quorum:
        raise SettingError(
            f"{look.words} has {look.n_records:,} records or more of {quorum} parties, and {len(enrolled)} tables have "
            f"{n_records:,}; give more tables, or plan earlier looks"
        )
    return enrolled
