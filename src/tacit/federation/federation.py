"""A federation: the parties that learn together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.data.matrix import names_of
from tacit.data.person import person_codes
from tacit.data.pieces import cut_tables
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.agreement import Agreement, Planned, Terms
from tacit.federation.channel import Channel, Opened
from tacit.federation.engine import Card, Engine, InProcess, RunStart
from tacit.federation.group import SumGroup
from tacit.federation.guard import Guard
from tacit.federation.look import PlannedLooks
from tacit.federation.policy import Policy
from tacit.federation.split import assign_parties, check_files, checked_arrays
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.secure.center.center import Center
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.center.simulated import SimulatedCenter
from tacit.unit import Unit

_MOST_SHOWN = 20
_CROWD = 1_000  # parties of a simulation, from which on they seal one box to the process (`process_key`)


class Federation:
    """Parties that can learn together. Make one with `split`, `from_tables`, `from_files` or `connect`.

    Users give it to a method's `fit`, and may look at what is public: `schema`, `names`, `sizes`, `n_parties`. `guard`
    shows a party of a simulation from within. `on_round` is told of each round of a run, for progress.

    The rest is for authors of methods and engines: `engine`, `center`, `cards`, `labels`, `witness` (a list that gets
    all that is opened, for audits), and `group`, `terms` and `begin`. A method talks to the parties through the
    `Channel` that `begin` gives it, never through the federation.

    Example:
        >>> import numpy as np
        >>> import tacit
        >>> X, y = np.array([[0.1], [-0.4], [0.8], [0.3]] * 10), np.array([0, 1, 1, 0] * 10)
        >>> tacit.Federation.split(X, y, n_parties=2, norm_bound=1.0)
        Federation(study='simulation', n_parties=2, n_records=40)
    """

    def __init__(
        self,
        engine: Engine,
        center: Center,
        *,
        study: str = "simulation",
        seeded: bool = False,
        dropouts: int = 0,
        run: str | None = None,
        look: int = 0,
    ) -> None:
        """Parties behind an engine; `run` names the run that `begin` begins, or resumes, and `look` its look."""
        self.engine = engine
        self.center = center
        self.study = study
        self.seeded = seeded
        self.dropouts = dropouts
        self.labels: npt.NDArray[Any] = np.array(engine.schema.target.classes)
        self.on_round: Callable[[int, str], None] | None = None
        self.witness: list[Opened] | None = None
        self.look = look
        self.looks: PlannedLooks | None = None  # which guards in this process hold the look against
        self._run = run

    # --- making one ------------------------------------------------------------------------------------------------

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, Table],
        *,
        policy: Policy | Mapping[str, Policy] | None = None,
        ledger: Ledger | None = None,
        study: str = "simulation",
        rng: Rng | None = None,
        dropouts: int = 0,
        offers: Mapping[str, float] | None = None,
    ) -> Federation:
        """Parties in this process, one for each table, each behind its own guard.

        Args:
            tables: the parties' names and tables, all of one schema.
            policy: one policy for all, or one for each; the default allows every private method, without a limit.
            ledger: where releases are written down; the default is forgotten with the process.
            study: the study that the releases are charged to.
            rng: the source of chance; a seeded one makes runs repeatable and NOT PRIVATE.
            dropouts: how many parties may be missing in a round: noise then counts on the others alone.
            offers: the epsilon of the parties that offer less than the method asks, by name.
        """
        if strangers := [name for name in offers or {} if name not in tables]:
            raise SettingError(f"offers names {strangers[0]!r}, which is no party; known are {', '.join(tables)}")
        rng = Rng.system() if rng is None else rng
        ledger = Ledger() if ledger is None else ledger
        guards = []
        for name, table in tables.items():
            own = policy.get(name, Policy()) if isinstance(policy, Mapping) else (policy or Policy())
            child = rng.child(f"party {name}")
            guards.append(Guard(name, table, policy=own, ledger=ledger, rng=child, offer=(offers or {}).get(name)))
        center = EmbeddedCenter() if len(guards) < _CROWD else SimulatedCenter()
        return cls(InProcess(guards), center, study=study, seeded=not rng.is_private, dropouts=dropouts)

    @classmethod
    def from_files(
        cls,
        schema: Schema,
        files: Mapping[str, str | Path],
        **settings: Any,
    ) -> Federation:
        """Parties in this process: `from_files(schema, {"north": "north.csv", "south": "south.parquet"})`.

        Args:
            schema: the public facts about the columns.
            files: the parties' names and their files: CSV, TSV (also .gz) or Parquet.
            settings: those of `from_tables`; and `person`, the column that says whose a record is, for methods with
                unit="person".
        """
        person = settings.pop("person", None)
        if not isinstance(files, Mapping):
            raise SettingError(
                f"files is a {type(files).__name__}; give the parties' names with their paths, as a dict"
            )
        check_files(files)
        tables = {name: Table.from_file(path, schema, person=person) for name, path in files.items()}
        return cls.from_tables(tables, **settings)

    @classmethod
    def connect(
        cls, url: str | None = None, *, study: str, folder: str | Path = "coordinator", wait: float | None = None
    ) -> Federation:
        """Parties elsewhere, over NATS. Needs `tacit[net]`.

        Args:
            url: the message server; None takes the one in the coordinator's folder.
            study: the name of a study that was announced to the parties.
            folder: the coordinator's folder, with its keys and what it knows of the parties.
            wait: how long to wait for parties to opt in, in seconds; None takes the study's deadline.
        """
        from tacit.federation.nats.engine import open_engine  # which needs an extra

        engine, dropouts = open_engine(url, study=study, folder=folder, wait=wait)
        return cls(engine, engine.center, study=study, dropouts=dropouts)

    @classmethod
    def split(
        cls,
        X: npt.ArrayLike | pd.DataFrame,
        y: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
        n_parties: int | None = None,
        weights: Sequence[float] | None = None,
        norm_bound: float | None = None,
        feature_names: Sequence[str] | None = None,
        **settings: Any,
    ) -> Federation:
        """A simulation: arrays, cut into parties.

        Whoever calls this holds every record. So the parties refuse nothing unless a `policy` says otherwise, the exact
        methods included; a report says NOT PRIVATE of a release that no epsilon bounds.

        Args:
            X: features, numbers of shape (n, d); a data frame's columns keep their names.
            y: class labels, of shape (n,); the sorted labels are the classes, the last one is the positive class.
            groups: the name of each record's party. Or:
            n_parties: cut at random into this many parties of equal size, or of sizes in proportion to
            weights: one number for each party.
            norm_bound: rows are scaled down to this L2 norm; None clips nothing, and methods that need a bound refuse.
            feature_names: the columns' names, if not a data frame's.
            settings: those of `from_tables`, but for the default of `policy`: `Policy.disclosing_everything()`. And
                `seed` for the cut (0); `persons`, whose each record is, of shape (n,), for methods with unit="person".
        """
        feature_names = names_of(X) if feature_names is None else feature_names
        X, y = checked_arrays(X, y)
        assignment = assign_parties(len(X), groups, n_parties, weights, seed=settings.pop("seed", 0))
        labels, persons = np.unique(y), settings.pop("persons", None)
        if persons is not None:
            persons = person_codes(persons, len(X), "Federation.split")
        schema = Schema.of_arrays(X.shape[1], labels.tolist(), norm_bound=norm_bound, feature_names=feature_names)
        names, codes = np.unique(assignment, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(names)))
        pieces = cut_tables(
            X[order], y[order], schema, starts.tolist(), persons=None if persons is None else persons[order]
        )
        tables = dict(zip(names.tolist(), pieces, strict=True))
        if settings.get("policy") is None:
            settings["policy"] = Policy.disclosing_everything()
        federation = cls.from_tables(tables, **settings)
        federation.labels = labels
        return federation

    # --- what is public ----------------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The public facts about the columns."""
        return self.engine.schema

    @property
    def cards(self) -> Mapping[str, Card]:
        """What each party told when it joined."""
        return self.engine.cards

    @property
    def names(self) -> tuple[str, ...]:
        """The parties' names."""
        return tuple(self.cards)

    @property
    def n_parties(self) -> int:
        """How many parties there are."""
        return len(self.cards)

    @property
    def quorum(self) -> int:
        """How many parties a round needs, if its method can do without the others."""
        if not 0 <= self.dropouts < self.n_parties:
            raise SettingError(f"dropouts = {self.dropouts} of {self.n_parties} parties leaves nobody; choose fewer")
        return self.n_parties - self.dropouts

    @property
    def sizes(self) -> dict[str, int]:
        """The number of records of each party: public under the replace-one relation, and 0 where it is hidden."""
        return {name: card.n_records for name, card in self.cards.items()}

    def guard(self, party: str) -> Guard:
        """The guard of a party that lives in this process: its policy, ledger and log."""
        if not isinstance(self.engine, InProcess):
            raise SettingError("guards live at the parties; only a federation in this process can show them")
        return self.engine.guard(party)

    def __repr__(self) -> str:
        return f"Federation(study={self.study!r}, n_parties={self.n_parties}, n_records={sum(self.sizes.values())})"

    def _repr_html_(self) -> str:
        """The parties as a notebook shows them: names, and what is public of their sizes."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{size:,}</td></tr>"
            if size
            else f"<tr><td>{escape(name)}</td><td></td></tr>"
            for name, size in list(self.sizes.items())[:_MOST_SHOWN]
        )
        more = self.n_parties - _MOST_SHOWN
        return (
            f"<div><strong>Federation of {self.n_parties:,} parties</strong>, study {escape(self.study)}"
            f"<table><thead><tr><th>party</th><th>records</th></tr></thead><tbody>{rows}</tbody></table>"
            f"{f'<p>and {more:,} more</p>' if more > 0 else ''}</div>"
        )

    # --- for authors of methods and engines --------------------------------------------------------------------------

    def group(self, method: Planned) -> SumGroup:
        """The parties as a run of `method` tells them of each other."""
        cards = self.cards
        return SumGroup.of(
            {name: card.size(method.weighted_unit) for name, card in cards.items()},
            quorum=self.n_parties if method.needs_everybody else self.quorum,
            told=method.sizes_told,
            signatures={name: card.signature for name, card in cards.items() if card.signature},
            look=self.look,
            offers={name: card.offer for name, card in cards.items() if card.offer is not None},
        )

    def told_sizes(self, method: Planned) -> dict[str, int | None]:
        """The numbers of records, or of persons, that a report of a run may tell; None where neighbours differ."""
        if method.sizes_told == "none":
            return dict.fromkeys(self.names)
        unit: Unit = "person" if method.weighted_unit == "person" else "record"
        return {name: card.size(unit) for name, card in self.cards.items()}

    def terms(self, method: Planned) -> Terms:
        """What a run of `method` would be: its plan, and which steps it asks. Asks nobody."""
        return method.terms(self.schema, self.group(method))

    def begin(self, method: Planned) -> Channel:
        """Begin a run of `method`, or resume the one that this federation names.

        Questions of a run that is resumed get the answers that were given then, at no cost.
        """
        start = RunStart(
            run=Rng.system().bytes(8).hex() if self._run is None else self._run,
            agreement=Agreement(study=self.study, method=method, looks=self.looks),
            group=self.group(method),
        )
        channel = Channel(self.engine, self.center, start, seeded=self.seeded)  # a bad setting ends it here
        channel.on_round, channel.witness = self.on_round, self.witness
        self.engine.begin(start)
        return channel

    def close(self) -> None:
        """Let go of the connection, if there is one."""
        self.engine.close()
