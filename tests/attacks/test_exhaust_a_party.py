"""Somebody wants a party to spend its memory, its time or its disk on messages that it will not believe anyway."""

from __future__ import annotations

import asyncio
import io
import json
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from tacit import wire
from tacit.daemon.party.anchor import make_ledger
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.handler import PartyHandler
from tacit.errors import WireError
from tacit.federation.log import Log
from tacit.federation.member.address import Address
from tacit.federation.member.folder import MemberFolder, Pinned
from tacit.federation.member.identity import Identity
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.member_list import MemberList
from tacit.federation.message import question_digest
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import PARTY_CALLS, most_bytes
from tacit.federation.nats.letter import Letter, read_letter, signed, write_letter
from tacit.privacy.ledger import Ledger
from tacit.studies.study import Study

from ..daemon.conftest import STUDY
from .line import Echo, Line

COORDINATOR = Identity("coordinator", "coordinator", b"c" * 32)
NORTH = Identity("north", "party", b"n" * 32)
MEGABYTE = 1 << 20


def many_values(n_bytes: int) -> bytes:
    """A message of so many bytes with as many values as fit: a list of nothings."""
    return b"L" + struct.pack("<I", n_bytes - 5) + b"N" * (n_bytes - 5)


def nested_values(n_bytes: int) -> bytes:
    """Lists in a list, each as long as the message could still hold."""
    inner = b"L" + struct.pack("<I", 8) + b"N" * 8
    count = (n_bytes - 5) // len(inner)
    return b"L" + struct.pack("<I", count) + inner * count


def unsigned(body: bytes) -> bytes:
    """A frame whose lengths are right and whose signature is none."""
    return b"tacit letter 3\0\0" + bytes(64) + struct.pack("<IQ", 0, len(body)) + body


@pytest.fixture
def n_parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values the wire's reader has read so far."""
    counted = [0]
    right = wire._Reader.value

    def value(self: wire._Reader, at: int, depth: int) -> tuple[wire.Value, int]:
        counted[0] += 1
        return right(self, at, depth)

    monkeypatch.setattr(wire._Reader, "value", value)
    return counted


def peak_of(frame: bytes, kinds: tuple[str, ...] = ("ask",)) -> tuple[int, str]:
    """The most memory that reading a frame took beyond the frame, and what was said to it."""
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match=r"\w") as refused:
            read_letter(frame, sender=COORDINATOR.member, recipient="north", kinds=kinds)
        return tracemalloc.get_traced_memory()[1], str(refused.value)
    finally:
        tracemalloc.stop()


def test_a_frame_that_is_not_signed_is_never_parsed(n_parsed: list[int]) -> None:
    """20 MB of small values in nobody's name once cost 18 to 30 s and 500 MB."""
    body = many_values(20 * MEGABYTE)
    stranger = Identity("coordinator", "coordinator", b"s" * 32)
    frames = {
        "bare": body,
        "as a map": wire.encode({"signature": bytes(64)})[:5] + body,
        "signed by a stranger": signed(write_letter(stranger, kind="ask", recipient="north", body=body), stranger),
        "with a signature of zeros": unsigned(body),
    }
    for name, frame in frames.items():
        peak, _ = peak_of(frame)
        assert n_parsed[0] == 0, name
        assert peak < MEGABYTE, name


def test_a_frame_longer_than_its_kind_allows_is_not_even_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    def digest(text: bytes) -> bytes:
        hashed.append(len(text))
        return bytes(64)

    monkeypatch.setattr("tacit.federation.nats.letter._digest", digest)
    frame = unsigned(bytes(MEGABYTE))
    peak_of(frame, kinds=("spent", "ping"))
    assert not hashed
    peak_of(frame, kinds=("hello", "ping"))  # which may be so long
    assert len(hashed) == 1
    assert max(most_bytes(kind) for kind in PARTY_CALLS) < 10 * MEGABYTE


def test_what_a_malicious_coordinator_signs_costs_a_bounded_number_of_values(n_parsed: list[int]) -> None:
    for body in (many_values(20 * MEGABYTE), nested_values(20 * MEGABYTE)):
        letter = write_letter(COORDINATOR, kind="ask", recipient="north", body=body)
        read = read_letter(signed(letter, COORDINATOR), sender=COORDINATOR.member, recipient="north", kinds=("ask",))
        n_parsed[0] = 0
        with pytest.raises(WireError, match="values is over the limit; send numbers as an array"):
            wire.decode(read.body)
        assert n_parsed[0] <= wire.MAX_VALUES + 1


@pytest.mark.parametrize("value", ["N", "I", "S", "B", "L", "M", "A"])
def test_memory_for_a_message_is_a_small_multiple_of_it(value: str) -> None:
    one = {
        "N": b"N",
        "I": b"I" + bytes([7] * 8),
        "S": b"S" + struct.pack("<I", 1) + b"x",
        "B": b"B" + struct.pack("<I", 1) + b"x",
        "L": b"L" + struct.pack("<I", 1) + b"N",
        "M": b"M" + struct.pack("<I", 1) + b"S" + struct.pack("<I", 1) + b"x" + b"N",
        "A": b"Ad" + struct.pack("<BQ", 1, 0),
    }[value]
    count = 2_000
    message = b"L" + struct.pack("<I", count) + one * count
    tracemalloc.start()
    wire.decode(message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * len(message) + MEGABYTE // 16


@pytest.fixture
def party(tmp_path: Path) -> Iterator[PartyHandler]:
    pinned = Pinned(address=Address(url="tls://nowhere:1", authority=""), coordinator=COORDINATOR.member, center=())
    identity = Identity.make("north", "party", tmp_path)
    MemberFolder.write(tmp_path, identity.member, pinned, None)
    (tmp_path / "records.csv").write_text("x\n1\n")
    (tmp_path / "party.toml").write_text('[data]\nfile = "records.csv"\n')
    make_ledger(tmp_path, "north")
    handler = PartyHandler(MemberFolder.load(tmp_path, "party"), Journal("north", io.StringIO()))
    yield handler
    handler.close()


def test_ten_thousand_refused_letters_do_not_fill_the_ledgers_disk(party: PartyHandler, tmp_path: Path) -> None:
    for number in range(10_000):
        body = b"%d" % number
        letter = Letter(
            kind="ask", study="x" * 1500, run="r" * 1500, sender="coordinator", recipient="north",
            about=question_digest(body), nonce="0" * 32, time=0.0, body=body,
        )  # fmt: skip
        reply = party.handle(letter)
        assert reply is not None
        assert reply.kind == "refusal"
    written = sum(path.stat().st_size for path in tmp_path.glob("ledger.db*"))
    assert written < 6 * MEGABYTE  # SQLite's own journal takes up to 4 of them
    ledger = Ledger(tmp_path / "ledger.db")
    log = Log(ledger, "north")
    assert log.verify() == len(log.lines()) <= 250
    assert all(len(line.text) < 1500 for line in log.lines())
    party._log.append("released", run="r")  # a release is always written, and tells how many there were
    assert log.lines()[-1].decision["left_out"] == 10_000 - 200
    assert log.verify() == len(log.lines())
    ledger.close()


def test_a_reason_is_cut_where_a_reader_would_stop(tmp_path: Path) -> None:
    log = Log(Ledger(tmp_path / "ledger.db"), "north")
    log.append("refused", why="w" * 1_000_000, study="s" * 1_000_000)
    assert len(log.lines()[0].text) < 1000
    assert log.verify() == 1


def test_a_daemons_own_log_grows_slower_the_longer_a_flood_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now = io.StringIO(), [1e9]
    journal = Journal("north", stream)
    monkeypatch.setattr("tacit.federation.nats.journal.time.time", lambda: now[0])
    for _ in range(3_000):  # seconds
        for _ in range(25):
            journal.note("not-believed", why="w" * 10_000)
        now[0] += 1.0
    assert stream.getvalue().count("\n") < 400  # 20 in 1 s, in 2 s, 4 s, ... 10 minutes, 10 minutes, ...
    assert len(stream.getvalue()) < MEGABYTE
    assert '"left_out"' in stream.getvalue()


def test_lists_and_studies_without_end_fill_no_disk(tmp_path: Path) -> None:
    known = KnownMembers(tmp_path)
    for number in range(1, 4):
        strangers = tuple(f"stranger-{number}-{k}" for k in range(1000))
        known.follow(MemberList(number=number, members=(COORDINATOR.member,), revoked=strangers))
    assert known.gone() == frozenset()  # nobody who was never here
    consents = Consents(tmp_path / "studies.db")
    for number in range(220):
        consents.keep(Study.parse(STUDY.replace('"trial"', f'"trial {number}"')))
    assert len(consents.all()) <= 201
    consents.close()


def test_runs_that_begin_and_are_given_up_without_end_fill_no_log(party: PartyHandler) -> None:
    for number in range(300):
        party._log.append("began", run=f"r{number}")
        party._log.append("abandoned", run=f"r{number}")
    assert len(party._log.lines()) <= 201


@pytest.mark.parametrize(("event", "most"), [("not-believed", 2_000), ("ready", 20_000)])
def test_a_patient_flood_fills_no_disk_either(event: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attacker sends just so many a second that none is left out, and goes on like that."""
    stream, now, seconds = io.StringIO(), [0.0], 1_500
    journal = Journal("north", stream)
    monkeypatch.setattr("tacit.federation.nats.journal.time.time", lambda: now[0])
    for day in range(2):
        for second in range(seconds):
            now[0] = 86_400.0 * day + second + 0.5
            for _ in range(20):
                journal.note(event, why="w" * 300)
    now[0] = 2 * 86_400.0
    journal.note(event, why="the next day")
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(told) == 2 * most + 1
    assert len(told) + sum(line.get("left_out", 0) for line in told) == 2 * seconds * 20 + 1


def test_letters_that_wait_are_counted_with_all_that_they_take(tmp_path: Path) -> None:
    """The network may send the last list of members again and again, while a step is at work. Its body is short."""
    hold = threading.Event()

    class Busy(Echo):
        def handle(self, letter: Letter) -> None:
            hold.wait()

    async def flood() -> tuple[int, int]:
        line = Line(tmp_path, ["north"])
        line.handlers["north"] = Busy()
        line.start("north")
        service = line.services["north"]
        body = MemberList(number=1, members=(line.members["north"],)).encode()
        frame = signed(write_letter(COORDINATOR, kind="members", recipient="*", body=body), COORDINATOR)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        try:
            with patch("tacit.federation.nats.service._MOST_WAITING", MEGABYTE):
                for _ in range(1000):
                    await service._on_members("tacit.members", bytes(bytearray(frame)), "")
            taken = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
            hold.set()
        n_waiting = len(service._tasks)
        await line.settle()
        assert service._waiting == 0
        return n_waiting, taken

    n_waiting, taken = asyncio.run(flood())
    assert 0 < n_waiting < 1000
    assert taken < 2 * MEGABYTE
