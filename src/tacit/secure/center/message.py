"""What travels to a node of the center and back: its requests, its replies, and how local nodes are introduced.

    Keys     -> {index, key}
    Check    -> Boxes               what this node tells the others of the parties' proofs
    Sum      -> PartialSum          this node's share of the sum
    Keep     -> {}
    Compute  -> Opened              its shares of what the program opens
    Encrypt  -> {key, n_features, key_signature} from node 0, {matrix, matrix_signature} from node 1: together an
                InverseParts
    Product  -> OpenedStep from node 0, {} from the others
    Forget   -> {}
    Status   -> {n_kept, n_compiled}

Each reply is inside {done: reply}; or it is {refused: why}, or {misfits: {party: why}} if parties are at fault, or
{followed: why} if it was another node that would not, after which the node goes on; or {broken: why}, after which its
engine is no longer in step with the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tacit import wire
from tacit.errors import WireError
from tacit.record import from_value
from tacit.secure.center.product import Form
from tacit.secure.ring import Floats, Words
from tacit.wire import Value


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Who the node is, and its public key."""

    ask: Literal["keys"] = "keys"


@dataclass(frozen=True, kw_only=True)
class Check:
    """What the other nodes need to hear of the parties' proofs, before anything is added up for `use`.

    Attributes:
        context: the question that the envelopes answer.
        use: what they were sealed for.
        envelopes: what each party sealed to this node.
        sum_group: the names of all to whom the question was put.
        nodes: the public keys of the center's nodes.
    """

    ask: Literal["check"] = "check"
    context: str
    use: str
    envelopes: Mapping[str, bytes]
    sum_group: tuple[str, ...] | None
    nodes: tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True)
class Sum:
    """The node's share of a sum, to be opened.

    Attributes:
        context: the question that the envelopes answer.
        envelopes: what each party sealed to this node.
        sum_group: the names of all to whom the question was put; None where nobody signs.
        boxes: what the other nodes told this one of the parties' proofs, by their keys in hexadecimal; empty where
            nobody signs.
    """

    ask: Literal["sum"] = "sum"
    context: str
    envelopes: Mapping[str, bytes]
    sum_group: tuple[str, ...] | None
    boxes: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class Keep:
    """A sum that stays with the nodes, unopened, as `name` of the run."""

    ask: Literal["keep"] = "keep"
    run: str
    name: str
    context: str
    envelopes: Mapping[str, bytes]
    sum_group: tuple[str, ...] | None
    boxes: Mapping[str, bytes]
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(n < 0 for n in self.shape):
            raise WireError(f"a shape of {self.shape} is none; sizes count from 0")


@dataclass(frozen=True, kw_only=True)
class Compute:
    """A program of the table, to be run on what the run keeps."""

    ask: Literal["compute"] = "compute"
    run: str
    program: str
    public: Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class Encrypt:
    """The run's inverse, to be encrypted for so many parties."""

    ask: Literal["encrypt"] = "encrypt"
    run: str
    n_parties: int


@dataclass(frozen=True, kw_only=True)
class Product:
    """The sum of the parties' products with the encrypted inverse, to be opened; node 1 alone gets envelopes."""

    ask: Literal["product"] = "product"
    run: str
    context: str
    envelopes: Mapping[str, bytes]
    sum_group: tuple[str, ...] | None
    form: Form


@dataclass(frozen=True, kw_only=True)
class Forget:
    """All that a run keeps is to be dropped."""

    ask: Literal["forget"] = "forget"
    run: str


@dataclass(frozen=True, kw_only=True)
class Status:
    """How much the node keeps and has compiled."""

    ask: Literal["status"] = "status"


Request = Keys | Check | Sum | Keep | Compute | Encrypt | Product | Forget | Status

_REQUESTS: dict[str, type[Request]] = {
    "keys": Keys, "check": Check, "sum": Sum, "keep": Keep, "compute": Compute, "encrypt": Encrypt,
    "product": Product, "forget": Forget, "status": Status,
}  # fmt: skip


def read_request(message: bytes) -> Request:
    """The request in `message`; a `WireError` if it is none of a node's."""
    value = wire.decode(message)
    ask = value.get("ask") if isinstance(value, dict) else None
    found = _REQUESTS.get(ask) if isinstance(ask, str) else None
    if found is None:
        raise WireError("a request that is none of a node's")
    return from_value(found, value)


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """What a node tells each of the others, by their keys in hexadecimal."""

    boxes: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class PartialSum:
    """A node's share of a sum."""

    words: Words = field(repr=False)

    def __post_init__(self) -> None:
        _check_words(self.words)


@dataclass(frozen=True, kw_only=True)
class OpenedShares:
    """A node's shares of one value that a program opens."""

    words: Words = field(repr=False)
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_words(self.words)


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A node's shares of all that a program opens, by name."""

    opened: Mapping[str, OpenedShares]


@dataclass(frozen=True, kw_only=True)
class InverseParts:
    """The encrypted inverse, as nodes 0 and 1 tell and sign it together; in a simulation the signatures are empty."""

    key: bytes
    n_features: int
    matrix: bytes
    key_signature: bytes
    matrix_signature: bytes


@dataclass(frozen=True, kw_only=True)
class OpenedStep:
    """The opened sum of the parties' products."""

    step: Floats


@dataclass(frozen=True, kw_only=True)
class Introduction:
    """What a local node says of itself first: its public key."""

    key: bytes


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """What a local node is told then: in which folder the nodes' engines meet, and for how long it waits for them."""

    folder: str
    patience_seconds: float


def _check_words(words: Words) -> None:
    if words.ndim != 3 or words.shape[2] != 2:
        raise WireError("a node gave something that is not shares")
