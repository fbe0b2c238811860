"""A node of the center: it adds what it cannot read, keeps it, and runs the table's programs with the other nodes.

`handle` takes one message and returns one, bytes to bytes, whatever carries them; `message` has all of them. Only the
replies to `Sum` and `Compute` hold shares; no error ever does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nacl.public import PrivateKey

from tacit import wire
from tacit.errors import CenterError, TacitError
from tacit.record import to_value
from tacit.secure.center.agreement import EngineFailed, OthersRefused, failing, together
from tacit.secure.center.engine import SecureEngine, Task
from tacit.secure.center.memory import Memory
from tacit.secure.center.message import (
    Compute,
    Encrypt,
    Forget,
    Keep,
    Keys,
    Opened,
    OpenedShares,
    PartialSum,
    Product,
    Request,
    Status,
    Sum,
    read_request,
)  # fmt: skip
from tacit.secure.center.product import ADDS, USE, Form, ProductNode, ProductTerms
from tacit.secure.center.program import find_program
from tacit.secure.envelope import OPEN, Label, sum_group_digest, unseal, unseal_message
from tacit.secure.share import Shared, Words, add
from tacit.storage import write_secret
from tacit.wire import Value

GroupNames = Sequence[str] | None
"""The names of all to whom a question was put; None where nobody signs."""


@dataclass(frozen=True)
class KeptValue:
    """A value that a run keeps at this node: its shares, and what it is a function of."""

    shared: Shared = field(repr=False)
    origin: str


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """What the envelopes of one sum must say: which question, for what use, and to whom it was put."""

    context: str
    use: str
    sum_group: GroupNames

    def check(self, label: Label, party: str, n_parties: int) -> None:
        """Refuse what a party sealed for something else, or for more parties than are there."""
        if (label.context, label.party) != (self.context, party):
            raise CenterError(f"the envelope of party {party!r} belongs to another question or party")
        if label.use != self.use:
            wanted = "for opening" if self.use == OPEN else f"as {self.use!r}"
            raise CenterError(f"party {party!r} sealed its part as {label.use!r}, not {wanted}")
        if label.n_parties > n_parties:
            raise CenterError(
                f"party {party!r} lets a sum over {label.n_parties} parties be opened; {n_parties} are in it"
            )


@dataclass(frozen=True, kw_only=True)
class _Signers:
    """Who must have signed the envelopes of a sum, with which keys, and for a sum within which sum group."""

    keys: Mapping[str, bytes]
    digest: str

    def check(self, label: Label) -> None:
        """Refuse what a party did not seal for a sum within this sum group."""
        if self.keys and label.sum_group != self.digest:
            raise CenterError(f"party {label.party!r} did not agree to be added up with all to whom the question went")


class NodeServer:
    """One node: its key, what it has agreed to, what runs keep with it, and its side of the engine."""

    def __init__(
        self,
        index: int,
        *,
        home: Path | None = None,
        engine: Callable[[], SecureEngine] | None = None,
        members: Callable[[], Mapping[str, bytes]] | None = None,
    ) -> None:
        """A node without a program yet.

        Args:
            index: its place among the nodes.
            home: a folder that only this node can read, for its key and what it has agreed to; without one it starts
                afresh each time.
            engine: gives the engine, when the first program is to be run.
            members: gives the parties' names and the public keys of their signatures, as this node pinned them; it then
                adds up nothing that they did not sign, and only those together who agreed to it. Without it the node
                takes every envelope: for a simulation, where one process holds all of them.
        """
        self.index = index
        self._key = PrivateKey.generate() if home is None else _key_of(home)
        self._memory = Memory(None if home is None else home / "agreed.sqlite")
        self._engine = engine
        self._members = members
        self._kept: dict[tuple[str, str], KeptValue] = {}
        self._products: dict[str, ProductNode] = {}

    @property
    def public_key(self) -> bytes:
        """The key to which parties seal."""
        return bytes(self._key.public_key)

    def handle(self, request: bytes) -> bytes:
        """Answer one message. Never raises."""
        try:
            return wire.encode({"done": self._answer(read_request(request))})
        except EngineFailed as error:
            return wire.encode({"broken": str(error)})
        except OthersRefused as error:
            return wire.encode({"followed": str(error)})
        except TacitError as error:
            return wire.encode({"refused": str(error)})
        except Exception as error:  # its text might quote what a party sent
            return wire.encode({"refused": f"node {self.index} cannot answer: {type(error).__name__}"})

    def partial_sum(self, context: str, envelopes: Mapping[str, bytes], sum_group: GroupNames = None) -> Words:
        """This node's share of the sum over the parties, to be opened; the question was put to `sum_group`.

        Raises:
            CenterError: as `keep`; and if a party sealed its part for a program.
        """
        return self._total(_Wanted(context=context, use=OPEN, sum_group=sum_group), envelopes)

    def keep(
        self,
        run: str,
        name: str,
        context: str,
        envelopes: Mapping[str, bytes],
        shape: tuple[int, ...],
        sum_group: GroupNames = None,
    ) -> None:
        """Add what the parties sealed and keep the sum, unopened, as `name` of the run.

        Raises:
            CenterError: if an envelope is for another context, party or use, if fewer parties are in the sum than one
                of them requires, or if the context was summed before over other parties.
        """
        if name == OPEN:
            raise CenterError(f"{OPEN!r} names what is opened; nothing is kept under it")
        shared = Shared(self._total(_Wanted(context=context, use=name, sum_group=sum_group), envelopes), shape)
        self._kept[run, name] = KeptValue(shared, wire.digest([context, name]))

    def compute(self, run: str, name: str, public: Mapping[str, Value]) -> dict[str, Shared]:
        """Run a program on what the run keeps; returns this node's shares of what it opens.

        Raises:
            CenterError: if the center has no such program, if the run keeps no value that it reads, if it ran before on
                the same values with other public arguments, or if the other nodes are asked something else.
        """

        # 1. All nodes agree on what is to be computed, and on what.
        def prepare(engine: SecureEngine) -> tuple[tuple[Task, str], str, Sequence[Shared]]:
            task, origin = self._task(run, name, public)
            engine.prepare(task)
            return (task, origin), origin, tuple(task.inputs.values())

        engine, (task, origin) = together(self._connected(), self.index, prepare)
        # 2. Together with the other nodes.
        with failing(f"program {name!r} stopped at node {self.index}"):
            outputs = engine.run(task)
        # 3. What it keeps stays; only what it opens is returned.
        for key in task.program.keeps:
            self._kept[run, key] = KeptValue(outputs[key], wire.digest([origin, key]))
        return {key: outputs[key] for key in task.program.opens}

    def encrypt_inverse(self, run: str, n_parties: int) -> dict[str, Value]:
        """Encrypt what the run keeps as its inverse; see `tacit.secure.center.product`."""

        def prepare(engine: SecureEngine) -> tuple[ProductNode, str, Sequence[Shared]]:
            kept = self._kept.get((run, "inverse"))
            if kept is None or len(kept.shared.shape) != 2:
                raise CenterError("the run keeps no inverse to encrypt; run program 'invert' first")
            terms = ProductTerms(n_features=kept.shared.shape[0], n_parties=n_parties)
            what = wire.digest(["encrypt", kept.origin, vars(terms)])
            return ProductNode(engine, terms, kept.shared), what, [kept.shared]

        _, product = together(self._connected(), self.index, prepare)
        with failing(f"the encryption of the inverse stopped at node {self.index}"):
            reply = product.encrypt()
        self._products[run] = product
        return reply

    def open_product(
        self, run: str, context: str, envelopes: Mapping[str, bytes], form: Form, sum_group: GroupNames = None
    ) -> dict[str, Value]:
        """Open the sum of what parties sealed to node 1; see `tacit.secure.center.product`.

        Raises:
            CenterError: as `keep`; or if the run has no encrypted inverse.
        """

        def prepare(_: SecureEngine) -> tuple[tuple[ProductNode, bytes | None], str, Sequence[Shared]]:
            product = self._products.get(run)
            if product is None:
                raise CenterError("the run has no encrypted inverse; ask for it first")
            masked = None
            if self.index == ADDS:
                wanted = _Wanted(context=context, use=USE, sum_group=sum_group)
                masked = product.masked_sum(self._messages(wanted, envelopes), form)
            return (product, masked), wire.digest(["product", run, context, vars(form)]), ()

        _, (product, masked) = together(self._connected(), self.index, prepare)
        with failing(f"the opening of the step stopped at node {self.index}"):
            return product.open(masked, form)

    def forget(self, run: str) -> None:
        """Drop all that a run keeps."""
        for key in [key for key in self._kept if key[0] == run]:
            del self._kept[key]
        self._products.pop(run, None)

    def _answer(self, request: Request) -> Value:
        match request:
            case Keys():
                return {"index": self.index, "key": self.public_key}
            case Sum(context=context, envelopes=envelopes, sum_group=sum_group):
                return to_value(PartialSum(words=self.partial_sum(context, envelopes, sum_group)))
            case Keep(run=run, name=name, context=context, envelopes=envelopes, shape=shape, sum_group=sum_group):
                self.keep(run, name, context, envelopes, shape, sum_group)
                return {}
            case Compute(run=run, program=name, public=public):
                opened = self.compute(run, name, public)
                return to_value(
                    Opened(opened={k: OpenedShares(words=v.words, shape=v.shape) for k, v in opened.items()})
                )
            case Encrypt(run=run, n_parties=n_parties):
                return self.encrypt_inverse(run, n_parties)
            case Product(run=run, context=context, envelopes=envelopes, form=form, sum_group=sum_group):
                return self.open_product(run, context, envelopes, form, sum_group)
            case Forget(run=run):
                self.forget(run)
                return {}
            case Status():
                engine = None if self._engine is None else self._engine()
                return {"n_kept": len(self._kept), "n_compiled": 0 if engine is None else engine.n_compiled}

    def _total(self, wanted: _Wanted, envelopes: Mapping[str, bytes]) -> Words:
        """The sum of this node's parts, if every party sealed them for this."""
        total: Words | None = None
        signers = self._signers(wanted.sum_group, envelopes)
        for party, envelope in envelopes.items():
            with _naming(party):
                contents = unseal(envelope, self._key, signers.keys.get(party))
            wanted.check(contents.label, party, len(envelopes))
            signers.check(contents.label)
            if total is not None and total.shape != contents.words.shape:
                raise CenterError(f"party {party!r} sent {contents.words.shape[1]} numbers, others {total.shape[1]}")
            total = contents.words if total is None else add(total, contents.words)
        if total is None:
            raise CenterError("there is nothing to add up: no party sent an envelope")
        self._sum_once(wanted.context, envelopes)
        return total

    def _messages(self, wanted: _Wanted, envelopes: Mapping[str, bytes]) -> dict[str, bytes]:
        """What parties sealed as products to this node."""
        messages = {}
        signers = self._signers(wanted.sum_group, envelopes)
        for party, envelope in envelopes.items():
            with _naming(party):
                label, messages[party] = unseal_message(envelope, self._key, signers.keys.get(party))
            wanted.check(label, party, len(envelopes))
            signers.check(label)
        self._sum_once(wanted.context, envelopes)
        return messages

    def _signers(self, sum_group: GroupNames, parties: Iterable[str]) -> _Signers:
        """The keys of all to whom the question was put, as this node pinned them; none where nobody signs."""
        if self._members is None:
            return _Signers(keys={}, digest="")
        known, asked = self._members(), sum_group or ()
        strangers = [name for name in (*asked, *parties) if name not in known]
        if strangers:
            raise CenterError(
                f"this node knows no party {strangers[0]!r}, or its operator has not accepted it; "
                f"`tacit center members` lists whom it knows"
            )
        outside = [name for name in parties if name not in asked]
        if outside:
            raise CenterError(f"the question was not put to party {outside[0]!r}, which is in the sum")
        keys = {name: known[name] for name in asked}
        return _Signers(keys=keys, digest=sum_group_digest(keys))

    def _sum_once(self, context: str, parties: Iterable[str]) -> None:
        """One context, one set of parties, for good."""
        names: list[Value] = [*sorted(parties)]
        if not self._memory.agrees(["parties", context], names):
            raise CenterError(
                "this sum was opened before over other parties; the difference would show one party's part"
            )

    def _task(self, run: str, name: str, public: Mapping[str, Value]) -> tuple[Task, str]:
        """What is to be computed, and a name for it that is the same at every node."""
        program = find_program(name)
        missing = [key for key in program.reads if (run, key) not in self._kept]
        if missing:
            raise CenterError(f"program {name!r} reads {', '.join(missing)}, which the run does not keep")
        kept = [self._kept[run, key] for key in program.reads]
        arguments, fixed = program.arguments(public)
        # Two thresholds on one value tell more than one: a search with many would tell the value.
        values: Value = [name, [one.origin for one in kept]]
        if not self._memory.agrees(["program", values], [arguments, fixed]):
            raise CenterError(
                f"program {name!r} ran before on the same values with other public arguments; once is all"
            )
        inputs = {key: one.shared for key, one in zip(program.reads, kept, strict=True)}
        origin = wire.digest([values, arguments, fixed, [list(shared.shape) for shared in inputs.values()]])
        return Task(program=program, inputs=inputs, public=arguments, fixed=fixed), origin

    def _connected(self) -> SecureEngine:
        if self._engine is None:
            raise CenterError("this node has no engine; ask a center that computes: `center.computing()`")
        return self._engine()


@contextlib.contextmanager
def _naming(party: str) -> Iterator[None]:
    """Say whose envelope is wrong, so that a study can go on without that party."""
    try:
        yield
    except CenterError as error:
        raise CenterError(f"party {party!r}: {error}") from error


def _key_of(home: Path) -> PrivateKey:
    """The node's key, made once; only the node's own account can read it."""
    path = home / "node.key"
    if path.exists():
        return PrivateKey(path.read_bytes())
    key = PrivateKey.generate()
    write_secret(path, bytes(key))
    return key
