"""Whoever reaches a center node's engine wants to stop it, to pose as another node, or to have node 0 decrypt."""

from __future__ import annotations

import contextlib
import hashlib
import io
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from tacit import wire
from tacit.daemon.center.handler import NodeHandler, prepare_engine
from tacit.federation.member.address import Address
from tacit.federation.member.folder import MemberFolder, Pinned
from tacit.federation.member.identity import Identity
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.node_card import NodeCard, Peers
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import CARD, NODE, PEERS
from tacit.federation.nats.letter import write_letter
from tacit.rand import Rng
from tacit.record import encode_record
from tacit.secure.bound import NormBound
from tacit.secure.center.center import Center, MessageCenter
from tacit.secure.center.message import Product
from tacit.secure.center.node import NodeServer
from tacit.secure.center.product import Form
from tacit.secure.certificate import make_own
from tacit.secure.envelope import Label, seal, sum_group_digest

from ..secure.center.conftest import mark

pytestmark = pytest.mark.skipif(find_spec("spu") is None, reason="the engine is not installed")

A = np.array([[0.9, 0.1], [0.1, 0.5]])
G = np.array([0.25, 0.5])
PARTY = Identity("p", "party", b"p" * 32)
COORDINATOR = Identity("coordinator", "coordinator", b"c" * 32)
A_WHILE = 120.0  # seconds: bounds a failure

T = TypeVar("T")


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Call all at the same time, as three machines would; their results."""
    results: dict[int, T] = {}

    def keep(index: int, call: Callable[[], T]) -> None:
        results[index] = call()

    threads = [threading.Thread(target=keep, args=(i, call), daemon=True) for i, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(A_WHILE)
    assert len(results) == len(calls), "a node did not answer"
    return [results[index] for index in range(len(calls))]


class Nodes(MessageCenter):
    """The three nodes' own handlers, each with its real engine in a process, and letters handed over directly."""

    def __init__(self, root: Path) -> None:
        self.folders = [_member_folder(root / f"node{seat}", seat) for seat in range(3)]
        for folder in self.folders:
            known = KnownMembers(folder.path)
            known.believe_all()
            known.learn([PARTY.member, *(one.member for one in self.folders)])
        self.ports = [int(prepare_engine(folder.path, None).rpartition(":")[2]) for folder in self.folders]
        self.journals = [io.StringIO() for _ in self.folders]
        self._handlers = [
            NodeHandler(folder, Journal(folder.identity.name, journal))
            for folder, journal in zip(self.folders, self.journals, strict=True)
        ]
        self.begin("s")

    def begin(self, session: str) -> None:
        """A session of the engines; whatever they are doing ends."""
        cards = [NodeCard.decode(body)[0] for body in self._all(CARD, [b""] * 3)]
        peers = Peers(session=session, members=tuple(f.member for f in self.folders), cards=tuple(cards))
        letter = write_letter(COORDINATOR, kind=PEERS, recipient="node")
        for handler in self._handlers:
            handler.arrives(letter)
        self._all(PEERS, [peers.encode()] * 3)

    @property
    def keys(self) -> tuple[bytes, ...]:
        return tuple(folder.member.seal_key for folder in self.folders)

    def computing(self) -> Center:
        return self

    def asked(self, context: str) -> Sequence[str]:
        return [PARTY.name]

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        return self._all(NODE, requests)

    def ask_one(self, seat: int, body: bytes, kind: str = NODE) -> bytes:
        """One node's reply."""
        reply = self._handlers[seat].handle(write_letter(COORDINATOR, kind=kind, recipient="node", body=body))
        assert reply is not None
        assert reply.kind == kind, reply.body
        return reply.body

    def _all(self, kind: str, bodies: Sequence[bytes]) -> list[bytes]:
        return together([partial(self.ask_one, seat, body, kind) for seat, body in enumerate(bodies)])

    def keep_one(self, run: str, name: str, value: np.ndarray) -> None:
        """Let the nodes keep what one party sealed."""
        context = f"{run} {name}"
        fixed = np.round(value * 2**40).astype(np.int64).ravel()
        group = sum_group_digest({PARTY.name: PARTY.member.letter_key})
        label = Label(
            context=context, party=PARTY.name, n_parties=1, use=name, sum_group=group, run=run, ledger=mark(),
            bound=(NormBound(size=fixed.size, norm=2**43),),
        )  # fmt: skip
        envelopes = {PARTY.name: seal(fixed, label, self.keys, rng=Rng.system(), sign=PARTY.sign)}
        self.keep(run, name, context, envelopes, value.shape)

    def step(self) -> np.ndarray:
        """A run of two programs, whose result is known."""
        run = Rng.system().bytes(8).hex()
        self.keep_one(run, "curvature", A)
        self.keep_one(run, "gradient", G)
        assert self.compute(run, "invert", condition_bits=4)["residual_ok"] > 0
        return np.asarray(self.compute(run, "step")["step"])

    def close(self) -> None:
        for handler in self._handlers:
            handler.close()


def _member_folder(path: Path, seat: int) -> MemberFolder:
    path.mkdir(mode=0o700)
    identity = Identity.make(f"node{seat}", "center", path)
    member = replace(identity.member, seal_key=NodeServer(seat, home=path).public_key)
    address = Address(url="tls://127.0.0.1:4222", authority="")
    MemberFolder.write(path, member, Pinned(address=address, coordinator=COORDINATOR.member, center=()), seat)
    return MemberFolder.load(path, "center")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    made = Nodes(tmp_path_factory.mktemp("nodes"))
    try:
        made.step()  # linked: the ports are open
        yield made
    finally:
        made.close()


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def push(rank: int, key: str, value: bytes = b"", part: tuple[int, int] | None = None) -> bytes:
    """A message of the engine's link in the name of node `rank`, as the engine's own library would frame it."""
    service = field(1, b"org.interconnection.link.ReceiverService") + field(2, b"Push")
    meta = field(1, service) + b"\x18\x00\x20\x07"
    body = (b"\x08" + varint(rank) if rank else b"") + field(2, key.encode()) + (field(3, value) if value else b"")
    if part is not None:
        body += b"\x20\x01" + field(5, b"\x08" + varint(part[0]) + b"\x10" + varint(part[1]))
    return b"PRPC" + (len(meta) + len(body)).to_bytes(4, "big") + len(meta).to_bytes(4, "big") + meta + body


def two_forged(rank: int) -> bytes:
    """Two parts of one message that disagree about its size: the library writes the second one outside its memory."""
    far = 1 << 40
    return push(rank, "k\x01\x021", b"x", (0, 2)) + push(rank, "k\x01\x021", b"x", (far, far + 1))


def hears(line: socket.socket, message: bytes) -> bytes:
    """What is answered to a message; nothing if the other side hangs up."""
    line.settimeout(5.0)
    with contextlib.suppress(TimeoutError, OSError):
        line.sendall(message)
        return line.recv(100)
    return b""


def plain(port: int, message: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=A_WHILE) as line:
        return hears(line, message)


def plain_all(port: int, messages: Sequence[bytes]) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=A_WHILE) as line, contextlib.suppress(OSError):
        line.sendall(b"".join(messages))
        line.shutdown(socket.SHUT_WR)
        line.settimeout(5.0)
        while line.recv(1 << 16):
            pass


def over_tls(port: int, message: bytes, shown: Path | None) -> bytes:
    """The same over TLS, with the certificate and key `engine` of a folder, or with none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if shown is not None:
        context.load_cert_chain(shown / "engine.pem", shown / "engine.key")
    with (
        socket.create_connection(("127.0.0.1", port), timeout=A_WHILE) as raw,
        context.wrap_socket(raw) as line,
    ):
        return hears(line, message)


def assert_computes(nodes: Nodes) -> None:
    np.testing.assert_allclose(nodes.step(), np.linalg.solve(A, G), atol=1e-9)


def test_plain_text_is_no_language_of_the_port(nodes: Nodes) -> None:
    for port in nodes.ports:
        assert not plain(port, push(1, "hello")).startswith(b"PRPC")
        assert not plain(port, b"GET /flags HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP")


def test_two_forged_messages_stop_no_engine(nodes: Nodes) -> None:
    plain(nodes.ports[0], two_forged(1))
    assert_computes(nodes)


def test_a_foreign_certificate_or_none_gets_no_further_than_the_handshake(nodes: Nodes, tmp_path: Path) -> None:
    make_own(tmp_path, "engine", "127.0.0.1")
    for shown in (tmp_path, None):
        assert over_tls(nodes.ports[0], push(1, "hello\x01\x020"), shown) == b""
    assert_computes(nodes)


def test_a_node_speaks_in_its_own_name_alone(nodes: Nodes) -> None:
    node_2 = nodes.folders[2].path
    assert over_tls(nodes.ports[0], push(2, "hello\x01\x020"), node_2).startswith(b"PRPC")  # its own name passes
    for rank in (0, 1):
        assert over_tls(nodes.ports[0], push(rank, "hello\x01\x020"), node_2) == b""
    assert "node 2 sent a message in the name of node 1" in (nodes.folders[0].path / "engine.log").read_text()
    assert_computes(nodes)


def test_a_node_cannot_write_outside_another_s_memory(nodes: Nodes) -> None:
    assert over_tls(nodes.ports[0], two_forged(2), nodes.folders[2].path) == b""
    assert_computes(nodes)


def test_a_node_s_certificate_opens_no_door_at_itself(nodes: Nodes) -> None:
    assert over_tls(nodes.ports[2], push(2, "hello\x01\x020"), nodes.folders[2].path) == b""


def test_with_forged_agreement_node_0_decrypts_nothing(nodes: Nodes) -> None:
    """The coordinator asks node 0 alone to open a product, and says in the others' names all that node 0 waits for."""
    nodes.keep_one("r", "curvature", A)
    assert nodes.compute("r", "invert", condition_bits=4)["residual_ok"] > 0
    inverse = nodes.encrypt_inverse("r", 1)
    form = Form(n_vectors=2, fraction_bits=0)
    request = encode_record(Product(run="r", context="c", envelopes={}, sum_group=None, form=form))
    answers: list[bytes] = []
    asked = threading.Thread(target=lambda: answers.append(nodes.ask_one(0, request)), daemon=True)
    asked.start()
    what = wire.digest(["product", "r", "c", vars(form)]).encode()
    nothing = hashlib.sha256().digest()
    told: list[bytes] = []
    for number in range(1, 3000):  # whatever the engine counts, it waits for one of these
        said = [push(rank, f"tacit:{number}:ALLGATHER\x01\x02{100_000 + number}", what) for rank in (1, 2)]
        said += [push(2, f"tacit:P2P-{number}:2->0\x01\x02{200_000 + number}", nothing)]
        said += [push(1, f"tacit:P2P-{number}:1->0\x01\x02{200_000 + number}", inverse.matrix)]
        told += said
    plain_all(nodes.ports[0], told)
    asked.join(5.0)
    try:
        assert not answers, f"node 0 decrypted for whoever asked: {wire.decode(answers[0])!r}"
    finally:
        nodes.begin("s2")  # ends what node 0 still waits for
        asked.join(A_WHILE)
    assert_computes(nodes)
