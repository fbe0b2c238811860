"""The channel: a run under way, as the author of a method sees it.

A method asks parties with one call a round:

    channel.sum(step, values)      only the total over the parties is opened
    channel.ask(step, values)      each party's own reply
    channel.keep(step, values)     the center keeps the total for `compute`, which opens what its program says

Each sends one question to every party. Users have no need of it: they make a `Federation` and call `fit`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.errors import AddendRefused, QuorumLost, TacitError, WireError
from tacit.federation.engine import Engine, RunStart
from tacit.federation.message import Answer, Question, question_digest
from tacit.federation.sealed_reply import answer_bytes, read_sealed, relayed_bytes
from tacit.federation.step import Step
from tacit.federation.traffic import Given, Traffic
from tacit.privacy.event import is_same_cost
from tacit.secure.center.center import Center
from tacit.secure.center.product import EncryptedInverse, Form
from tacit.secure.share import N_NODES
from tacit.wire import Value

__all__ = ["Channel", "Given", "Opened", "Traffic"]

T = TypeVar("T")
Total = npt.NDArray[np.int64]
Opened = npt.NDArray[np.int64] | Mapping[str, Value]
"""What becomes known in a round: the sum that the center opened, or what one party let go."""


class Channel:
    """One run of a method with its sum group.

    Attributes:
        plan: what follows from the method's settings and the group; every party derives the same.
        present: the parties that the last answer came from.
        traffic: what travelled so far.
        on_round: told of each round, for progress.
        witness: all that is opened, for audits; None keeps nothing.
        seeded: whether chance comes from a seed, so that nothing is private.
    """

    def __init__(self, engine: Engine, center: Center, start: RunStart, *, seeded: bool = False) -> None:
        self._engine = engine
        self._center = center
        self._start = start
        self._turns: Counter[str] = Counter()
        self._products: tuple[str, dict[str, bytes]] = ("", {})  # parties' encrypted products, not yet opened
        self._terms = start.agreement.terms(engine.schema, start.group)
        self.plan: Any = self._terms.plan
        self.present: tuple[str, ...] = ()
        self.traffic = Traffic()
        self.on_round: Callable[[int, str], None] | None = None
        self.witness: list[Opened] | None = None
        self.seeded = seeded

    # --- what is public ----------------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The public facts about the columns."""
        return self._engine.schema

    @property
    def run(self) -> str:
        """The run's name."""
        return self._start.run

    @property
    def names(self) -> tuple[str, ...]:
        """The parties' names."""
        return self._start.group.names

    @property
    def n_parties(self) -> int:
        """How many parties there are."""
        return len(self.names)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of units of each party, as the coordinator knows it; empty where neighbours differ in them."""
        if self._start.group.told == "none":
            return {}
        cards, unit = self._engine.cards, self._start.agreement.method.weighted_unit
        return {name: cards[name].size(unit) for name in self.names}

    @property
    def delta(self) -> float:
        """The run's delta, as the number of units settled it."""
        return self._terms.delta

    @property
    def offers(self) -> Mapping[str, float]:
        """The epsilon of the parties that offer less than is asked."""
        return self._start.group.offers

    @property
    def n_records(self) -> int:
        """How many records the parties have together, or persons where these are the unit; 0 where it is not told."""
        return self._start.group.n_records

    @property
    def coverage(self) -> float:
        """The share of all records that the parties have which the last answer came from; of parties, if hidden."""
        sizes = self.sizes or dict.fromkeys(self.names, 1)
        shares: Mapping[str, float] = self.plan.cohort.shares if self._start.group.offers else {}
        weights = {name: shares.get(name, 1.0) * size for name, size in sizes.items()}
        return sum(weights[name] for name in self.present) / sum(weights.values())

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(
        self, step: Step, values: Any = None, *, parties: Sequence[str] | None = None
    ) -> dict[str, Mapping[str, Value]]:
        """Run `step` at each party (or at those named) and return what each let go."""
        _, answers = self._ask(step, values, parties)
        sealed = [name for name, answer in answers.items() if answer.kind in ("sealed", "kept", "encrypted")]
        if sealed and len(sealed) == len(answers):
            raise WireError(
                f"{', '.join(sealed)} sealed the reply to step {step.name!r}; only the sum can be opened: call `sum` "
                f"or `keep`"
            )
        odd = dict.fromkeys(sealed, f"it sealed its reply to step {step.name!r}, and others did not")
        self._leave_out(odd, n_left=len(answers) - len(odd), least=len(answers))
        if self.witness is not None:
            self.witness += [answer.value for answer in answers.values()]
        return {name: answer.value for name, answer in answers.items()}

    def ask_each(self, step: Step, values: Mapping[str, Any]) -> dict[str, Mapping[str, Value]]:
        """Ask each of the named parties with values of its own: one round, since no question waits for an answer."""
        rounds, turn = self.traffic.rounds, self._turns[step.name]
        answers: dict[str, Mapping[str, Value]] = {}
        for name, own in values.items():
            self._turns[step.name] = turn
            answers |= self.ask(step, own, parties=[name])
        self.traffic.rounds = rounds + 1
        return answers

    def sum(self, step: Step, values: Any = None) -> npt.NDArray[np.int64]:
        """Run `step` at every party and open the sum of what they sealed: whole numbers on the step's grid."""
        digest, answers = self._ask(step, values)
        envelopes, shape = self._gather(
            step,
            {name: answer.value if answer.kind == "sealed" else None for name, answer in answers.items()},
            least=self._start.group.quorum,
        )
        total = self._over_the_honest(envelopes, lambda left: self._center.open_sum(digest, left))
        if self.witness is not None:
            self.witness.append(total)
        self.traffic.bytes_up += N_NODES * total.size * 32  # a pair of 128-bit words from each node
        return total.reshape(shape)

    def keep(self, step: Step, values: Any = None) -> None:
        """Run `step` at every party, and leave the sums of what they give with the center, unopened, by their names."""
        self._center = self._center.computing()  # before the parties are asked, who seal to its keys
        digest, answers = self._ask(step, values)
        kept, products = self._parts(step, answers)
        for use in sorted(next(iter(kept.values()))):
            values_of = {name: parts[use] for name, parts in kept.items()}
            envelopes, shape = self._gather(step, values_of, least=len(kept))
            with self._noting():
                self._center.keep(self.run, use, digest, envelopes, shape)
        self._products = digest, products

    def read(
        self, replies: Mapping[str, Mapping[str, Value]], reader: Callable[[str, Mapping[str, Value]], T]
    ) -> dict[str, T]:
        """What `reader` makes of each party's own reply; it raises a `WireError` at one that no honest party sends.

        Raises:
            AddendRefused: naming the parties with such replies, so that a run can begin again without them.
        """
        found: dict[str, T] = {}
        odd: dict[str, str] = {}
        for name, reply in replies.items():
            try:
                found[name] = reader(name, reply)
            except WireError as error:
                odd[name] = str(error)
        self._leave_out(odd, n_left=len(found), least=len(replies))
        return found

    def encrypted_inverse(self) -> EncryptedInverse:
        """What this run keeps as its inverse, encrypted by the center, for a step's values."""
        self._center = self._center.computing()
        return self._center.encrypt_inverse(self.run, self.n_parties)

    def open_product(self, form: Form) -> npt.NDArray[np.float64]:
        """Open the sum of the parties' products with the encrypted inverse, from the last question to `keep`."""
        digest, products = self._products
        with self._noting():
            opened = self._center.open_product(self.run, digest, products, form)
        if self.witness is not None:
            self.witness.append({"step": opened})
        self.traffic.messages += 2
        self.traffic.bytes_down += sum(map(len, products.values()))
        self.traffic.bytes_up += opened.nbytes
        return opened

    def compute(self, program: str, **public: Value) -> dict[str, npt.NDArray[np.float64]]:
        """Let the center run a program on what this run keeps there, and return what it opens."""
        self._center = self._center.computing()
        opened = self._center.compute(self.run, program, **public)
        if self.witness is not None:
            self.witness.append(dict(opened))
        self.traffic.messages += 2 * N_NODES
        self.traffic.bytes_up += N_NODES * sum(value.size for value in opened.values()) * 32
        return opened

    def end(self) -> None:
        """Tell those who answered nothing that the run is over for them: they get back what they reserved for it."""
        silent = [name for name in self.names if name not in self.traffic.given]
        if silent:
            self._engine.abandon(self._start, silent)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the run, unless it was interrupted and will be resumed."""
        if kind is None or issubclass(kind, TacitError):
            self.end()

    def forget(self) -> None:
        """Let the center drop what this run keeps there."""
        self._center.forget(self.run)

    def _over_the_honest(
        self, envelopes: Mapping[str, list[bytes]], open_sum: Callable[[Mapping[str, list[bytes]]], Total]
    ) -> Total:
        """Open a sum; if the nodes name parties whose addends are not what they declare, over the others.

        Nothing was opened when they do. The others must be as many as the run needs, or the run ends.
        """
        while True:
            try:
                total = open_sum(envelopes)
            except AddendRefused as refused:
                left = {name: sealed for name, sealed in envelopes.items() if name not in refused.parties}
                self._engine.exclude(refused.parties)
                if len(left) < self._start.group.quorum or len(left) == len(envelopes):
                    raise
                envelopes = left
            else:
                self.present = tuple(envelopes)
                return total

    def _parts(
        self, step: Step, answers: Mapping[str, Answer]
    ) -> tuple[dict[str, Mapping[str, Value]], dict[str, bytes]]:
        """What each party gives for the center to keep, by its uses, and encrypted products; all give the same uses."""
        kept: dict[str, Mapping[str, Value]] = {}
        products: dict[str, bytes] = {}
        odd: dict[str, str] = {}
        for name, answer in answers.items():
            match answer.kind, answer.value:
                case "kept", parts:
                    kept[name] = parts
                case "encrypted", {"addends": dict(parts), "product": bytes(product)}:
                    kept[name], products[name] = parts, product
                case _:
                    odd[name] = f"it did not seal its reply to step {step.name!r}"
        forms = {name: (name in products, tuple(sorted(parts))) for name, parts in kept.items()}
        odd |= dict.fromkeys(_unlike_most(forms, step), f"its reply to step {step.name!r} has other parts than most")
        self._leave_out(odd, n_left=len(answers) - len(odd), least=len(answers))
        return kept, products

    def _gather(
        self, step: Step, values: Mapping[str, Value], *, least: int
    ) -> tuple[dict[str, list[bytes]], tuple[int, ...]]:
        """The parties' envelopes and the shape that they declare alike; counts what is relayed to the center.

        Who declares another shape than most, or sealed nothing, is left out if `least` others remain.

        Raises:
            AddendRefused: naming them, if fewer remain.
        """
        envelopes: dict[str, list[bytes]] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        odd: dict[str, str] = {}
        for name, value in values.items():
            read = read_sealed(value, self._center.keys)
            if read is None:
                odd[name] = f"it did not seal its reply to step {step.name!r}"
            else:
                envelopes[name], shapes[name] = read
        if not envelopes:
            raise WireError(f"{', '.join(values)} did not seal the reply to step {step.name!r}")
        unlike = _unlike_most(shapes, step)
        odd |= dict.fromkeys(unlike, f"its reply to step {step.name!r} has another shape than that of most")
        envelopes = {name: sealed for name, sealed in envelopes.items() if name not in odd}
        self._leave_out(odd, n_left=len(envelopes), least=least)
        self.traffic.messages += 2 * N_NODES
        shape = shapes[next(iter(envelopes))]
        self.traffic.bytes_down += sum(relayed_bytes(sealed, shape) for sealed in envelopes.values())
        return envelopes, shape

    def _leave_out(self, odd: Mapping[str, str], *, n_left: int, least: int) -> None:
        """Note the parties that sent what no honest one sends; an `AddendRefused` that names them if too few remain."""
        if odd:
            self._engine.exclude(odd)
        if odd and n_left < least:
            raise AddendRefused(odd)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Whom the center refuses is noted, so that a run can begin again without it."""
        try:
            yield
        except AddendRefused as refused:
            self._engine.exclude(refused.parties)
            raise

    def _ask(self, step: Step, values: Any, parties: Sequence[str] | None = None) -> tuple[str, dict[str, Answer]]:
        names = self.names if parties is None else tuple(parties)
        message = self._question(step, values)
        digest = question_digest(message)
        if self.on_round is not None:
            self.on_round(self.traffic.rounds + 1, step.name)
        answers = self._as_planned(step, self._engine.ask(self._start, message, names, self._center.keys))
        self.traffic.rounds += 1
        self.traffic.messages += len(names) + len(answers)
        self.traffic.bytes_down += len(message) * len(names)
        for name, answer in answers.items():
            if (answer.party, answer.question) != (name, digest):
                raise WireError(f"party {name!r} answered another question, or in another's name")
            n_bytes = answer_bytes(answer, self._center.keys)
            self.traffic.bytes_up += n_bytes
            given = self.traffic.given.setdefault(name, Given())
            given.n_bytes += n_bytes
            given.events.append(answer.event)
        missing = [name for name in names if name not in answers]
        if missing and (parties is not None or len(answers) < self._start.group.quorum):
            raise QuorumLost(f"no answer from {', '.join(missing)}; ask again, or start a run without them")
        self.present = tuple(answers)
        return digest, answers

    def _as_planned(self, step: Step, answers: dict[str, Answer]) -> dict[str, Answer]:
        """The answers without those that claim another cost than the plan's, which a report would believe."""
        asks = [ask for ask in self._terms.course if ask.step.name == step.name]
        fitting = {n: one for n, one in answers.items() if all(is_same_cost(one.event, ask.cost(n)) for ask in asks)}
        odd = [name for name in answers if name not in fitting]
        if odd:
            self._engine.exclude(
                dict.fromkeys(odd, f"its reply to step {step.name!r} claims another cost than planned")
            )
        return fitting

    def _question(self, step: Step, values: Any) -> bytes:
        """The next question about `step`; the run's questions are the same ones when it is resumed."""
        agreement = self._start.agreement
        turn = self._turns[step.name]
        self._turns[step.name] += 1
        return Question(
            study=agreement.study, run=self.run, method=agreement.method.name, step=step.name, version=step.version,
            group=self._start.group.digest, plan=self._terms.digest, turn=turn, values=step.encode_values(values),
        ).encode()  # fmt: skip


def _unlike_most(forms: Mapping[str, Hashable], step: Step) -> list[str]:
    """Those whose reply has another form than that of most; a `WireError` that names all if no form is that of most."""
    (most, count), *others = Counter(forms.values()).most_common() or [(None, 0)]
    if others and 2 * count <= len(forms):
        raise WireError(
            f"the replies of {', '.join(map(repr, forms))} to step {step.name!r} differ in shape, and none has that of "
            f"most"
        )
    return [name for name, form in forms.items() if form != most]
