"""A federation: the parties that learn together, as a method sees them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import QuorumLost, SettingError, WireError
from tacit.federation.engine import Card, Engine, InProcess
from tacit.federation.guard import Guard
from tacit.federation.message import Answer, Question, question_digest
from tacit.federation.policy import Policy
from tacit.federation.step import Step
from tacit.privacy.event import Event
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.secure.center import Center, EmbeddedCenter
from tacit.secure.product import Form
from tacit.wire import Value

Opened = npt.NDArray[np.int64] | Mapping[str, Value]
"""What becomes known in a round: the sum that the center opened, or what one party let go."""


@dataclass
class Given:
    """What one party gave in a run: encoded bytes, and the event that each answer was charged with."""

    n_bytes: int = 0
    events: list[Event] = field(default_factory=list)


@dataclass
class Traffic:
    """What travelled in one run, in encoded bytes: up from the parties and the center, down to them."""

    rounds: int = 0
    messages: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    given: dict[str, Given] = field(default_factory=dict)


class Federation:
    """Parties that can be asked. Make one with `split`, `from_tables` or `from_files`.

    A method calls `ask` (each party's own reply), `sum` (only the total over the parties is opened) or `keep` (the
    center keeps the total for `compute`, which opens what its program says). These three send one question to every
    party, and count as one round.
    """

    def __init__(
        self, engine: Engine, center: Center, *, study: str = "simulation", seeded: bool = False, dropouts: int = 0
    ) -> None:
        self.engine = engine
        self.dropouts = dropouts
        self.present: tuple[str, ...] = ()  # the parties that the last answer came from
        self.center = center
        self.study = study
        self.seeded = seeded
        self.labels: npt.NDArray[Any] = np.array(engine.schema.target.classes)
        self.traffic = Traffic()
        self.on_round: Callable[[int, str], None] | None = None  # told of each round, for progress
        self.witness: list[Opened] | None = None  # all that is opened, for audits
        self._run = ""
        self._method = "ask"
        self._products: tuple[str, dict[str, bytes]] = ("", {})  # parties' encrypted products, not yet opened

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
    ) -> Federation:
        """Parties in this process, one for each table, each behind its own guard.

        Args:
            tables: the parties' names and tables, all of one schema.
            policy: one policy for all, or one for each; the default allows every private method, without a limit.
            ledger: where releases are written down; the default is forgotten with the process.
            study: the study that the releases are charged to.
            rng: the source of chance; a seeded one makes runs repeatable and NOT PRIVATE.
            dropouts: how many parties may be missing in a round: noise then counts on the others alone.
        """
        rng = Rng.system() if rng is None else rng
        ledger = Ledger() if ledger is None else ledger
        guards = []
        for name, table in tables.items():
            own = policy.get(name, Policy()) if isinstance(policy, Mapping) else (policy or Policy())
            child = rng.child(f"party {name}")
            guards.append(Guard(name, table, policy=own, ledger=ledger, rng=child))
        return cls(InProcess(guards), EmbeddedCenter(), study=study, seeded=not rng.is_private, dropouts=dropouts)

    @classmethod
    def from_files(
        cls,
        schema: Schema,
        *,
        policy: Policy | Mapping[str, Policy] | None = None,
        ledger: Ledger | None = None,
        study: str = "simulation",
        rng: Rng | None = None,
        **files: str | Path,
    ) -> Federation:
        """Parties in this process, one for each file: `from_files(schema, north="north.csv", south="s.parquet")`."""
        tables = {name: Table.from_file(path, schema) for name, path in files.items()}
        return cls.from_tables(tables, policy=policy, ledger=ledger, study=study, rng=rng)

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
        from tacit.federation.nats import connect  # which imports this module, and an extra

        return connect(url, study=study, folder=folder, wait=wait)

    @classmethod
    def split(
        cls,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
        n_parties: int | None = None,
        weights: Sequence[float] | None = None,
        norm_bound: float | None = None,
        feature_names: Sequence[str] | None = None,
        **settings: Any,
    ) -> Federation:
        """A simulation: arrays, cut into parties.

        Args:
            X: features, of shape (n, d).
            y: class labels, of shape (n,); the sorted labels are the classes, the last one is the positive class.
            groups: the name of each record's party. Or:
            n_parties: cut at random into this many parties of equal size, or of sizes in proportion to
            weights: one number for each party.
            norm_bound: rows are scaled down to this L2 norm; None clips nothing, and methods that need a bound refuse.
            feature_names: the columns' names.
            settings: `policy`, `ledger`, `study`, `rng`, `dropouts` as in `from_tables`; `seed` for the cut (0).
        """
        X = np.asarray(X)
        y = np.asarray(y)
        if X.ndim != 2 or y.shape != (len(X),):
            raise SettingError(f"X of shape {X.shape} and y of shape {y.shape} do not fit: give (n, d) and (n,)")
        assignment = _assign(len(X), groups, n_parties, weights, seed=settings.pop("seed", 0))
        labels = np.unique(y)
        schema = Schema.of_arrays(X.shape[1], labels.tolist(), norm_bound=norm_bound, feature_names=feature_names)
        order = np.argsort(assignment, kind="stable")
        names, starts = np.unique(assignment[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        tables = {
            str(name): Table.from_arrays(X[order[start:end]], y[order[start:end]], schema)
            for name, start, end in zip(names, starts.tolist(), ends, strict=True)
        }
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
    def coverage(self) -> float:
        """The share of all records that the parties have which the last answer came from."""
        sizes = self.sizes
        return sum(sizes[name] for name in self.present) / sum(sizes.values())

    @property
    def sizes(self) -> dict[str, int]:
        """The number of records of each party: public under the replace-one relation."""
        return {name: card.n_records for name, card in self.cards.items()}

    def guard(self, party: str) -> Guard:
        """The guard of a party that lives in this process: its policy, ledger and log."""
        if not isinstance(self.engine, InProcess):
            raise SettingError("guards live at the parties; only a federation in this process can show them")
        return self.engine.guard(party)

    def __repr__(self) -> str:
        return f"Federation(study={self.study!r}, n_parties={self.n_parties}, n_records={sum(self.sizes.values())})"

    # --- asking ------------------------------------------------------------------------------------------------------

    def begin(self, method: str, *, run: str | None = None) -> Federation:
        """The same parties at the start of a run of `method`: its questions are new ones, and its traffic is counted.

        Naming an earlier `run` resumes it: questions that were answered then get the same answers, at no cost.
        """
        started = copy.copy(self)
        started.traffic = Traffic()
        started._run = Rng.system().bytes(8).hex() if run is None else run
        started._method = method
        return started

    def ask(
        self, step: Step, *, parties: Sequence[str] | None = None, **arguments: Value
    ) -> dict[str, Mapping[str, Value]]:
        """Run `step` at each party (or at those named) and return what each let go."""
        _, answers = self._ask(step, parties, arguments)
        if any(answer.kind in ("sealed", "kept", "encrypted") for answer in answers.values()):
            raise WireError(f"step {step.name!r} seals its reply; only the sum can be opened: call `sum` or `keep`")
        if self.witness is not None:
            self.witness += [answer.value for answer in answers.values()]
        return {name: answer.value for name, answer in answers.items()}

    def sum(self, step: Step, **arguments: Value) -> npt.NDArray[np.int64]:
        """Run `step` at every party and open the sum of what they sealed: whole numbers on the step's grid."""
        digest, answers = self._ask(step, None, arguments)
        envelopes, shape = self._gather(
            step, {name: answer.value if answer.kind == "sealed" else None for name, answer in answers.items()}
        )
        total = self.center.open_sum(digest, envelopes)
        if self.witness is not None:
            self.witness.append(total)
        self.traffic.bytes_up += len(self.center.keys) * total.size * 32  # a pair of 128-bit words from each node
        return total.reshape(shape)

    def keep(self, step: Step, **arguments: Value) -> None:
        """Run `step` at every party, and leave the sums of what they give with the center, unopened, by their names."""
        self.center = self.center.computing()  # before the parties are asked, who seal to its keys
        digest, answers = self._ask(step, None, arguments)
        kept: dict[str, Mapping[str, Value]] = {}
        products: dict[str, bytes] = {}
        for name, answer in answers.items():
            match answer.kind, answer.value:
                case "kept", parts:
                    kept[name] = parts
                case "encrypted", {"addends": dict(parts), "product": bytes(product)}:
                    kept[name], products[name] = parts, product
                case _:
                    raise WireError(f"party {name!r} did not seal its reply to step {step.name!r}")
        for use in sorted({use for parts in kept.values() for use in parts}):
            envelopes, shape = self._gather(step, {name: parts.get(use) for name, parts in kept.items()})
            self.center.keep(self._run, use, digest, envelopes, shape)
        self._products = digest, products

    def encrypted_inverse(self) -> dict[str, Value]:
        """What this run keeps as its inverse, encrypted by the center, for a step's arguments."""
        self.center = self.center.computing()
        return self.center.encrypt_inverse(self._run, self.n_parties).to_value()

    def open_product(self, form: Form) -> npt.NDArray[np.float64]:
        """Open the sum of the parties' products with the encrypted inverse, from the last question to `keep`."""
        digest, products = self._products
        opened = self.center.open_product(self._run, digest, products, form)
        if self.witness is not None:
            self.witness.append({"step": opened})
        self.traffic.messages += 2
        self.traffic.bytes_down += sum(map(len, products.values()))
        self.traffic.bytes_up += opened.nbytes
        return opened

    def compute(self, program: str, **public: Value) -> dict[str, npt.NDArray[np.float64]]:
        """Let the center run a program on what this run keeps there, and return what it opens."""
        self.center = self.center.computing()
        opened = self.center.compute(self._run, program, **public)
        if self.witness is not None:
            self.witness.append(dict(opened))
        nodes = len(self.center.keys)
        self.traffic.messages += 2 * nodes
        self.traffic.bytes_up += nodes * sum(value.size for value in opened.values()) * 32
        return opened

    def close(self) -> None:
        """Let go of the connection, if there is one."""
        self.engine.close()

    def forget(self) -> None:
        """Let the center drop what this run keeps there."""
        self.center.forget(self._run)

    def _gather(self, step: Step, values: Mapping[str, Value]) -> tuple[dict[str, list[bytes]], tuple[int, ...]]:
        """The parties' envelopes and the shape that they declare alike; counts what is relayed to the center."""
        envelopes: dict[str, list[bytes]] = {}
        shapes: set[tuple[int, ...]] = set()
        for name, value in values.items():
            match value:
                case {"envelopes": list(sealed), "shape": list(dims), **rest} if not rest:
                    envelopes[name] = [envelope for envelope in sealed if isinstance(envelope, bytes)]
                    shapes.add(tuple(n for n in dims if isinstance(n, int)))
                case _:
                    raise WireError(f"party {name!r} did not seal its reply to step {step.name!r}")
        if len(shapes) != 1 or any(len(sealed) != len(self.center.keys) for sealed in envelopes.values()):
            raise WireError(f"the parties' replies to step {step.name!r} differ in shape")
        self.traffic.messages += 2 * len(self.center.keys)
        self.traffic.bytes_down += sum(len(e) for sealed in envelopes.values() for e in sealed)
        return envelopes, shapes.pop()

    def _ask(
        self, step: Step, parties: Sequence[str] | None, arguments: Mapping[str, Value]
    ) -> tuple[str, dict[str, Answer]]:
        names = self.names if parties is None else tuple(parties)
        message = Question(
            study=self.study,
            run=self._run,
            method=self._method,
            step=step.name,
            version=step.version,
            arguments=arguments,
        ).encode()
        digest = question_digest(message)
        if self.on_round is not None:
            self.on_round(self.traffic.rounds + 1, step.name)
        replies = self.engine.ask(message, names, self.center.keys)
        self.traffic.rounds += 1
        self.traffic.messages += len(names) + len(replies)
        self.traffic.bytes_down += len(message) * len(names)
        answers = {}
        for name, reply in replies.items():
            answer = Answer.decode(reply)
            if (answer.party, answer.question) != (name, digest):
                raise WireError(f"party {name!r} answered another question, or in another's name")
            answers[name] = answer
            self.traffic.bytes_up += len(reply)
            given = self.traffic.given.setdefault(name, Given())
            given.n_bytes += len(reply)
            given.events.append(answer.event)
        missing = [name for name in names if name not in answers]
        quorum = arguments.get("quorum")
        if missing and not (isinstance(quorum, int) and len(answers) >= quorum):  # what does not say is asked of all
            raise QuorumLost(f"no answer from {', '.join(missing)}; ask again, or start a run without them")
        self.present = tuple(answers)
        return digest, answers


def _assign(
    n: int, groups: npt.ArrayLike | None, n_parties: int | None, weights: Sequence[float] | None, *, seed: int
) -> npt.NDArray[np.str_]:
    """The party of each record."""
    if groups is not None:
        if n_parties is not None or weights is not None:
            raise SettingError("give either groups, or n_parties with optional weights, not both")
        assigned = np.asarray(groups).astype(str)
        if assigned.shape != (n,):
            raise SettingError(f"groups of shape {assigned.shape} must name one party for each of {n} records")
        return assigned
    n_parties = (3 if weights is None else len(weights)) if n_parties is None else n_parties
    shares = np.ones(max(n_parties, 0)) if weights is None else np.asarray(weights, dtype=float)
    if n_parties < 1 or shares.shape != (n_parties,) or not np.all(np.isfinite(shares)) or np.any(shares <= 0):
        raise SettingError(f"n_parties = {n_parties} and weights = {weights} do not fit: one positive weight for each")
    if n < n_parties:
        raise SettingError(f"{n} records cannot be cut into {n_parties} parties of at least one")
    cuts = np.round(np.cumsum(shares) / shares.sum() * n).astype(int)
    sizes = np.maximum(np.diff(cuts, prepend=0), 1)
    sizes[np.argmax(sizes)] += n - sizes.sum()
    width = len(str(n_parties))
    names = np.array([f"party{i + 1:0{width}d}" for i in range(n_parties)])
    assigned = np.repeat(names, sizes)
    return assigned[Rng.seeded(seed).permutation(n)]
