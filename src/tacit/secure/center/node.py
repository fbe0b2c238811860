"""A node of the center: it adds what it cannot read, keeps it, and runs the table's programs with the other nodes.

`handle` takes one message and returns one, bytes to bytes, whatever carries them; `message` has all of them. Only the
replies to `Sum` and `Compute` hold shares; no error ever does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from nacl.public import PrivateKey

from tacit import wire
from tacit.errors import AddendRefused, CenterError, TacitError
from tacit.record import to_value
from tacit.secure.center.agreement import EngineFailed, OthersRefused, failing, together
from tacit.secure.center.check import AddendCheck, Checked, same_terms
from tacit.secure.center.engine import SecureEngine, Task
from tacit.secure.center.kept import KeptValue, check_form, check_read, declared_by
from tacit.secure.center.memory import FILE, Memory
from tacit.secure.center.message import (
    Boxes,
    Check,
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
from tacit.secure.center.node_key import key_of
from tacit.secure.center.product import ADDS, USE, Form, ProductNode, ProductTerms
from tacit.secure.center.program import contrasts_digest, find_program
from tacit.secure.center.wanted import GroupNames, Labels, Signers, WantedSum, added, labels_of, same_contrasts
from tacit.secure.envelope import OPEN, Contents, marks_of, sum_group_digest, unseal, unseal_message
from tacit.secure.ring import Words
from tacit.secure.share import Shared
from tacit.secure.signature import Sign
from tacit.wire import Value


class NodeServer:
    """One node: its key, what it has agreed to, what runs keep with it, and its side of the engine."""

    def __init__(
        self,
        index: int,
        *,
        home: Path | None = None,
        engine: Callable[[], SecureEngine] | None = None,
        members: Callable[[], Mapping[str, bytes]] | None = None,
        peers: Callable[[], Collection[bytes]] = tuple,
        sign: Sign | None = None,
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
            peers: gives the public keys of the other nodes, as this node pinned them. A node that knows the parties
                adds up nothing before it has checked with the others that every addend keeps its bound.
            sign: signs as this node what parties multiply with; without it nothing is signed, as in a simulation.
        """
        self.index = index
        self._key = PrivateKey.generate() if home is None else key_of(home)
        self._memory = Memory(None if home is None else home / FILE)
        self._engine = engine
        self._members = members
        self._check = AddendCheck(index, self._key, peers)
        self._checked: tuple[str, tuple[Checked, Labels]] | None = None  # the last sum that was checked
        self._sign = sign
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
        except AddendRefused as error:
            return wire.encode({"misfits": error.parties})
        except TacitError as error:
            return wire.encode({"refused": str(error)})
        except Exception as error:  # its text might quote what a party sent
            return wire.encode({"refused": f"node {self.index} cannot answer: {type(error).__name__}"})

    def check(
        self, context: str, use: str, envelopes: Mapping[str, bytes], sum_group: GroupNames, nodes: Collection[bytes]
    ) -> dict[str, bytes]:
        """What this node tells the others of the parties' proofs: a box for each.

        Raises:
            AddendRefused: naming the parties whose envelopes are not what they should be.
            CenterError: as `keep`.
        """
        checked, labels = self._proved(WantedSum(context=context, use=use, sum_group=sum_group), envelopes, nodes)
        self._memory.check_marks(context, use, marks_of(labels))
        self._memory.tell_of(context, envelopes)
        return self._check.tell(checked, nodes)

    def partial_sum(
        self,
        context: str,
        envelopes: Mapping[str, bytes],
        sum_group: GroupNames = None,
        boxes: Mapping[str, bytes] | None = None,
    ) -> Words:
        """This node's share of the sum over the parties, to be opened; the question was put to `sum_group`.

        Raises:
            CenterError: as `keep`; and if a party sealed its part for a program.
        """
        return self._total(WantedSum(context=context, use=OPEN, sum_group=sum_group), envelopes, boxes or {})[0]

    def keep(
        self,
        run: str,
        name: str,
        context: str,
        envelopes: Mapping[str, bytes],
        shape: tuple[int, ...],
        sum_group: GroupNames = None,
        boxes: Mapping[str, bytes] | None = None,
    ) -> None:
        """Add what the parties sealed and keep the sum, unopened, as `name` of the run.

        Raises:
            AddendRefused: naming the parties whose addends are not what they declare.
            CenterError: if an envelope is for another context, party or use, if fewer parties are in the sum than one
                of them requires, or if the context was summed before over other parties.
        """
        check_form(name, shape)
        wanted = WantedSum(context=context, use=name, sum_group=sum_group, run=run)
        total, contrasts = self._total(wanted, envelopes, boxes or {})
        kept = KeptValue(
            shared=Shared(total, shape), origin=wire.digest([context, name]), contexts=frozenset({context}),
            parties=frozenset(envelopes), contrasts=contrasts,
        )  # fmt: skip
        self._memory.take_shape(context, name, shape)
        self._kept[run, name] = kept

    def compute(self, run: str, name: str, public: Mapping[str, Value]) -> dict[str, Shared]:
        """Run a program on what the run keeps; returns this node's shares of what it opens.

        Raises:
            CenterError: if the center has no such program, if the run keeps no value that it reads, if it ran before on
                the same values with other public arguments, or if the other nodes are asked something else.
        """

        engine = self._connected()
        if find_program(name).function is None:
            task, origin = self._task(run, name, public)
            self._keep_outputs(run, task, origin, dict(zip(task.program.keeps, task.inputs.values(), strict=True)))
            return {}

        # 1. All nodes agree on what is to be computed, and on what.
        def prepare(engine: SecureEngine) -> tuple[tuple[Task, str], str, Sequence[Shared]]:
            task, origin = self._task(run, name, public)
            engine.prepare(task)
            return (task, origin), origin, tuple(task.inputs.values())

        engine, (task, origin) = together(engine, self.index, prepare)
        # 2. Together with the other nodes.
        with failing(f"program {name!r} stopped at node {self.index}"):
            outputs = engine.run(task)
        # 3. What it keeps stays; only what it opens is returned.
        self._keep_outputs(run, task, origin, outputs)
        return {key: outputs[key] for key in task.program.opens}

    def _keep_outputs(self, run: str, task: Task, origin: str, outputs: Mapping[str, Shared]) -> None:
        read = [self._kept[run, key] for key in task.program.reads]
        for key in task.program.keeps:
            self._kept[run, key] = KeptValue.made_of(read, outputs[key], wire.digest([origin, key]))

    def encrypt_inverse(self, run: str, n_parties: int) -> dict[str, Value]:
        """Encrypt what the run keeps as its inverse; see `tacit.secure.center.product`."""

        def prepare(engine: SecureEngine) -> tuple[ProductNode, str, Sequence[Shared]]:
            kept = self._kept.get((run, "inverse"))
            if kept is None or len(kept.shared.shape) != 2:
                raise CenterError("the run keeps no inverse to encrypt; run program 'invert' first")
            if len(kept.contexts) != 1:
                raise CenterError("the kept inverse is made of answers to several questions; none can be signed for it")
            self._open_from(kept)
            (context,) = kept.contexts
            terms = ProductTerms(n_features=kept.shared.shape[0], n_parties=n_parties)
            what = wire.digest(["encrypt", kept.origin, vars(terms)])
            return ProductNode(engine, terms, kept.shared, context, self._sign), what, [kept.shared]

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
            if not self._memory.agrees(["form", context], vars(form)):
                raise CenterError("this product was opened before in another form; once is all")
            masked = None
            if self.index == ADDS:
                wanted = WantedSum(context=context, use=USE, sum_group=sum_group, run=run)
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
            case Check(context=context, use=use, envelopes=envelopes, sum_group=sum_group, nodes=nodes):
                return to_value(Boxes(boxes=self.check(context, use, envelopes, sum_group, nodes)))
            case Sum(context=context, envelopes=envelopes, sum_group=sum_group, boxes=boxes):
                return to_value(PartialSum(words=self.partial_sum(context, envelopes, sum_group, boxes)))
            case Keep(run=run, name=name, context=context, envelopes=envelopes, shape=shape):
                self.keep(run, name, context, envelopes, shape, request.sum_group, request.boxes)
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

    def _total(
        self, wanted: WantedSum, envelopes: Mapping[str, bytes], boxes: Mapping[str, bytes]
    ) -> tuple[Words, str]:
        """The sum of this node's parts, if every party sealed them for this, and the contrasts that all declared.

        Between organisations the parties also proved that their parts are short.
        """
        if self._members is None:
            contents = self._opened(wanted, envelopes)
            total, labels = added(contents), labels_of(contents)
        else:
            nodes = [self.public_key, *(bytes.fromhex(name) for name in boxes)]
            checked, labels = self._proved(wanted, envelopes, nodes)
            self._check.judge(checked, boxes)
            total = checked.total
        self._sum_once(wanted, envelopes, labels)
        return total, same_contrasts(labels)

    def _proved(
        self, wanted: WantedSum, envelopes: Mapping[str, bytes], nodes: Collection[bytes]
    ) -> tuple[Checked, Labels]:
        """The sum with this node's shares of the proofs, and the labels; kept between the check and the sum."""
        sealed: dict[str, Value] = {party: hashlib.sha256(one).digest() for party, one in envelopes.items()}
        group: Value = None if wanted.sum_group is None else list(wanted.sum_group)
        name = wire.digest([wanted.context, wanted.use, group, sealed, [*sorted(nodes)]])
        if self._checked is None or self._checked[0] != name:
            self._checked = None  # before another is made: they are large
            contents = self._opened(wanted, envelopes)
            self._checked = name, (self._check.add_up(contents, nodes), labels_of(contents))
        return self._checked[1]

    def _opened(self, wanted: WantedSum, envelopes: Mapping[str, bytes]) -> dict[str, Contents]:
        """What the envelopes hold, if every party sealed it for this; nothing is stretched yet."""
        signers = self._signers(wanted.sum_group, envelopes)
        contents: dict[str, Contents] = {}
        refused: dict[str, str] = {}
        for party, envelope in envelopes.items():
            try:
                contents[party] = unseal(envelope, self._key, signers.keys.get(party))
                wanted.check(contents[party].label, party)
                signers.check(contents[party].label)
            except CenterError as error:  # so that a study can go on without that party
                refused[party] = str(error)
        if refused:
            raise AddendRefused(refused)
        if not contents:
            raise CenterError("there is nothing to add up: no party sent an envelope")
        same_terms(contents)
        wanted.check_number(labels_of(contents))
        return contents

    def _messages(self, wanted: WantedSum, envelopes: Mapping[str, bytes]) -> dict[str, bytes]:
        """What parties sealed as products to this node."""
        messages, labels = {}, []
        signers = self._signers(wanted.sum_group, envelopes)
        for party, envelope in envelopes.items():
            try:
                label, messages[party] = unseal_message(envelope, self._key, signers.keys.get(party))
                wanted.check(label, party)
                signers.check(label)
            except CenterError as error:
                raise AddendRefused({party: str(error)}) from error
            labels.append(label)
        wanted.check_number(labels)
        self._sum_once(wanted, envelopes, labels)
        return messages

    def _signers(self, sum_group: GroupNames, parties: Iterable[str]) -> Signers:
        """The keys of all to whom the question was put, as this node pinned them; none where nobody signs."""
        if self._members is None:
            return Signers(keys={}, digest="")
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
        return Signers(keys=keys, digest=sum_group_digest(keys))

    def _sum_once(self, wanted: WantedSum, envelopes: Mapping[str, bytes], labels: Labels) -> None:
        """One question, one set of parties, one set of envelopes, each of a ledger that has gone on; for good."""
        if is_signed := self._members is not None:
            wanted.check_run(labels)
        marks = marks_of(labels) if is_signed else {}
        is_told = is_signed and wanted.use != USE  # of products they tell each other nothing
        self._memory.take_sum(wanted.context, wanted.use, envelopes, marks, is_told=is_told)

    def _task(self, run: str, name: str, public: Mapping[str, Value]) -> tuple[Task, str]:
        """What is to be computed, and a name for it that is the same at every node."""
        program = find_program(name)
        missing = [key for key in program.reads if (run, key) not in self._kept]
        if missing:
            raise CenterError(f"program {name!r} reads {', '.join(missing)}, which the run does not keep")
        kept = [self._kept[run, key] for key in program.reads]
        check_read(name, dict(zip(program.reads, kept, strict=True)))
        arguments, fixed = program.arguments(public)
        if program.is_declared and contrasts_digest(arguments) != declared_by(kept):
            raise CenterError(f"program {name!r} opens no other contrasts than those that the parties declared")
        # Two thresholds on one value tell more than one: a search with many would tell the value.
        values: Value = [name, [one.origin for one in kept]]
        if not self._memory.agrees(["program", values], [arguments, fixed]):
            raise CenterError(f"program {name!r} ran before on the same values with other arguments; once is all")
        inputs = {key: one.shared for key, one in zip(program.reads, kept, strict=True)}
        for inverse in {"inverse", "inverse_blocks"} & inputs.keys():
            self._open_from(self._kept[run, inverse])
        origin = wire.digest([values, arguments, fixed, [list(shared.shape) for shared in inputs.values()]])
        return Task(program=program, inputs=inputs, public=arguments, fixed=fixed), origin

    def _open_from(self, inverse: KeptValue) -> None:
        """One inverse of the same answers, for good: the difference of two is a polynomial of what they invert."""
        if not self._memory.agrees(["inverse", inverse.answers()], inverse.origin):
            raise CenterError("another inverse of the same answers was opened from before; ask the parties anew")

    def _connected(self) -> SecureEngine:
        if self._engine is None:
            raise CenterError("this node has no engine; ask a center that computes: `center.computing()`")
        return self._engine()
