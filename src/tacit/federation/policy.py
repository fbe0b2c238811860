"""What a party allows, before it is asked anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from tacit.data.label import near
from tacit.data.table import Table
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.member.approval import plain_fingerprint
from tacit.federation.reply import Encrypted, Kept, Relayed, Reply, Sealed
from tacit.privacy.event import Event, why_not_private
from tacit.privacy.ledger import Budget

METHOD_NAMES = (
    "averaging", "curator-averaging", "ensemble", "functional-mechanism", "hypothesis-transfer", "local",
    "noisy-descent", "objective-perturbation", "pooled", "private-evaluation", "private-newton", "privlogit",
    "secure-newton", "ternary-descent",
)  # fmt: skip
"""The methods that come with the package. Others may be written, and a policy may name them."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The rules of one party. The guard asks them before every answer; no default allows a release that is not private.

    Attributes:
        methods: the methods it takes part in; None allows every one.
        columns: the columns it lets a study use; None allows every one.
        min_records: the fewest records with which it answers at all.
        min_records_exact: the fewest with which it gives exact statistics that adding up alone hides. In a small party
            that hides little. Of two parties with 4 or 5 features, one recovered the other's records from the iterates,
            to 1e-11. It did when they were 1 or 2, mostly when they were 3, sometimes when 5, never when 8.
        budget: the most that its records may cost.
        not_private: the methods whose releases it accepts although no epsilon bounds them. These are baselines that
            disclose statistics, exact openings, the papers' own calibrations and epsilon = infinity. It also names
            those whose epsilon holds only if the coordinator is honest (`curator-averaging`).
        approvers: the fingerprints of those of whom one must have signed a study; None asks for no signature.

    Example:
        >>> import tacit
        >>> policy = tacit.Policy(methods=["private-newton"], budget=tacit.Budget(epsilon_per_study=1.0))
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables(hospitals, policy=policy)
        >>> try:
        ...     tacit.PrivateNewton(epsilon=2.0).fit(parties)
        ... except tacit.TacitError as refusal:
        ...     print(type(refusal).__name__)
        BudgetExceeded
    """

    methods: Collection[str] | None = None
    columns: Collection[str] | None = None
    min_records: int = 1
    min_records_exact: int = 20
    budget: Budget = field(default_factory=Budget)
    not_private: Collection[str] = ()
    approvers: Collection[str] | None = None

    def __post_init__(self) -> None:
        for name in ("min_records", "min_records_exact"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} = {getattr(self, name)} must be at least 1")
        for name in ("methods", "not_private"):
            if isinstance(listed := getattr(self, name), str):
                raise SettingError(f"{name} = {listed!r} must be a list of method names")
            if listed is not None:
                _check_spelling(name, listed)
        for mark in self.approvers or ():
            plain_fingerprint(mark)

    @classmethod
    def disclosing_everything(cls) -> Policy:
        """The rules of a simulation, in which whoever asks holds every record already: nothing is refused.

        Of a party with records to protect this protects none: every method may release what no epsilon bounds. The
        reports of such runs say NOT PRIVATE as ever.
        """
        return cls(min_records_exact=1, not_private=_EveryMethod())

    def check_question(self, party: str, method: str, table: Table) -> None:
        """Refuse before anything is computed; depends on the table's size and columns only."""
        if self.methods is not None and method not in self.methods:
            allowed = ", ".join(sorted(self.methods)) or "none"
            raise PolicyRefusal(f"party {party!r} does not take part in {method!r}; it allows: {allowed}")
        if self.columns is not None:
            used = (*table.schema.feature_names, table.schema.target.name, table.person_column)
            forbidden = [name for name in used if name is not None and name not in self.columns]
            if forbidden:
                raise PolicyRefusal(
                    f"party {party!r} does not let a study use column {forbidden[0]!r}; "
                    f"it allows: {', '.join(sorted(self.columns)) or 'none'}"
                )
        if table.n_records < self.min_records:
            raise PolicyRefusal(
                f"party {party!r} answers with {self.min_records} records or more and has fewer; "
                f"leave it out, or let it lower min_records"
            )

    def check_sizes(self, party: str, method: str, told: str) -> None:
        """Refuse to tell a size where it is protected: where records come and go, unless the method is named."""
        if self.budget.relation == "add-remove" and told != "none" and method not in self.not_private:
            raise PolicyRefusal(
                f"party {party!r}: {method!r} tells how many records it has, which its add-remove budget protects. "
                f"Let the study promise under add-remove"
            )

    def check_event(self, party: str, method: str, event: Event) -> None:
        """Refuse what no epsilon bounds, unless this party has named the method."""
        self._check_named(party, method, why_not_private(event))

    def _check_named(self, party: str, method: str, why: str) -> None:
        if why and method not in self.not_private:
            raise PolicyRefusal(
                f"party {party!r}: {method!r} would release what no epsilon bounds ({why}). "
                f"To accept that, name the method in the party's policy: Policy(not_private=[{method!r}])"
            )

    def check_reply(self, party: str, method: str, reply: Reply, n_records: int) -> None:
        """Refuse a release that no epsilon bounds, unless this party has named the method and has enough records."""
        why = why_not_private(reply.event) or (reply.counts_on if isinstance(reply, Relayed) else "")
        if why:
            self._check_named(party, method, why)
            hidden = isinstance(reply, Sealed | Kept | Encrypted | Relayed) and reply.exact
            if hidden and n_records < self.min_records_exact:
                raise PolicyRefusal(
                    f"party {party!r} gives exact statistics of {self.min_records_exact} records or more, and has "
                    f"fewer; leave it out, or let it lower min_records_exact"
                )


def _check_spelling(setting: str, listed: Collection[str]) -> None:
    """Refuse what is nearly a method's name: a rule with a slip of the pen rules nothing."""
    for name in listed:
        meant = None if name in METHOD_NAMES else near(name, METHOD_NAMES)
        if meant is not None and not isinstance(listed, _EveryMethod):
            raise SettingError(f"{setting} names {name!r}, which is no method; did you mean {meant!r}?")


class _EveryMethod(Collection[str]):
    """The names of all methods, those included that nobody has written yet."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(("every method",))

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "every method"
