"""Whoever carries letters wants one believed that nobody wrote: now that not each is signed, but most have a tag."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.errors import WireError
from tacit.federation.member.identity import Identity
from tacit.federation.message import question_digest
from tacit.federation.nats import exchange
from tacit.federation.nats.letter import Letter, read_letter, signed, tagged, write_letter
from tacit.federation.nats.session import KEY_BYTES, AcceptedSessions, LetterSession, OfferedSessions, _derive

from .line import COORDINATOR, Line

NORTH = Identity("north", "party", b"n" * 32)
SOUTH = Identity("south", "party", b"s" * 32)
SIGNED, TAGGED = b"tacit letter 3\0\0", b"tacit session 1\0"
SMALL_ORDER = [bytes(32), (1).to_bytes(32, "little")]  # points whose product is zero, whatever the secret


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    monkeypatch.setattr(exchange, "_FIRST_REPEAT", 3600.0)  # nothing is sent again because the machine is busy
    return Line(tmp_path)


@contextmanager
def soon_again() -> Iterator[None]:
    """Within this the coordinator soon sends a letter again, and signs it: more often, the busier the machine."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exchange, "_FIRST_REPEAT", 0.05)
        yield


def forms(frames: Sequence[bytes]) -> list[bytes]:
    """Which of the two forms letters had, one after the other, however often each was sent."""
    return [form for form, _ in groupby(frame[:16] for frame in frames)]


def on(line: Line, attack: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await attack()
        await line.settle()

    asyncio.run(run())


def ends(member: Identity = NORTH) -> tuple[LetterSession, AcceptedSessions]:
    """The coordinator's end of a session with a member, and the member's sessions."""
    offered, accepted = OfferedSessions(COORDINATOR.member), AcceptedSessions(member.member, COORDINATOR.member)
    offered.take(member.member, accepted.accept(offered.offer))
    session = offered.find(member.member)
    assert session is not None
    return session, accepted


def question(recipient: str = "north", body: bytes = b"what?") -> Letter:
    return write_letter(COORDINATOR, kind="ask", recipient=recipient, body=body, about=question_digest(body))


def read(frame: bytes, accepted: AcceptedSessions, recipient: str = "north") -> Letter:
    return read_letter(frame, sender=COORDINATOR.member, recipient=recipient, kinds=("ask",), find=accepted.find)


# --- what is meant to happen -----------------------------------------------------------------------------------------


def test_the_first_letters_are_signed_and_later_ones_have_a_tag_without_a_lap_for_it(line: Line) -> None:
    async def three_rounds() -> None:
        for number in range(3):
            body = b"%d" % number
            assert await line.ask(body, ("north", "south")) == {"north": b"to " + body, "south": b"to " + body}

    on(line, three_rounds)
    for name in ("north", "south"):
        assert [frame[:16] for frame in line.frames("ask", name)] == [SIGNED, TAGGED, TAGGED]
        assert [frame[:16] for frame in line.frames("answer", name)] == [SIGNED, TAGGED, TAGGED]
    assert len(line.seen) == 12


def test_a_member_that_was_started_again_gets_a_new_session(line: Line) -> None:
    async def restart() -> None:
        await line.ask(b"1")
        await line.ask(b"2")
        line.start("north")
        with soon_again():
            assert await line.ask(b"3") == {"north": b"to 3"}
        assert await line.ask(b"4") == {"north": b"to 4"}

    on(line, restart)
    assert forms(line.frames("ask")) == [SIGNED, TAGGED, SIGNED, TAGGED]
    assert "of a session that is not known here" in line.not_believed("north")


def test_a_member_that_says_it_is_back_is_not_kept_waiting(line: Line) -> None:
    async def restart() -> None:
        await line.ask(b"1")
        line.start("north")
        await line.exchange._on_fetch("tacit.fetch.north", b"", "")
        await line.ask(b"2")

    on(line, restart)
    assert [frame[:16] for frame in line.frames("ask")] == [SIGNED, SIGNED]
    assert line.not_believed("north") == ""


def test_two_processes_of_the_coordinators_have_a_session_each(line: Line) -> None:
    async def two() -> None:
        first, second = line.exchange, line.new_exchange()
        for number in range(3):
            for line.exchange in (first, second):
                body = b"%d %d" % (number, line.exchange is second)
                assert await line.ask(body) == {"north": b"to " + body}

    on(line, two)
    assert [frame[:16] for frame in line.frames("ask")] == [SIGNED] * 2 + [TAGGED] * 4


# --- a tag that nobody made ------------------------------------------------------------------------------------------


@given(position=st.integers(0, 10**6), flip=st.integers(1, 255))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_one_changed_byte_anywhere_is_not_believed(position: int, flip: int) -> None:
    session, accepted = ends()
    frame = bytearray(tagged(question(), session))
    assert read(bytes(frame), accepted).body == b"what?"
    frame[position % len(frame)] ^= flip
    with pytest.raises(WireError, match=r"\w"):
        read(bytes(frame), accepted)


@pytest.mark.parametrize("stream", ["ask", "answer"])
def test_altered_letters_are_dropped_and_the_round_goes_on(line: Line, stream: str) -> None:
    def alter(where: str, frame: bytes) -> list[bytes]:
        if frame[:16] != TAGGED or not where.startswith(f"tacit.{stream}."):
            return [frame]
        return [frame[:-1] + bytes([frame[-1] ^ 1]), frame[:32] + bytes(48) + frame[80:]]

    async def attack() -> None:
        await line.ask(b"1")
        line.alter = alter
        with soon_again():
            assert await line.ask(b"2") == {"north": b"to 2"}  # as it was written, or not at all

    on(line, attack)
    reader = "north" if stream == "ask" else "coordinator"
    assert "has no tag of its session" in line.not_believed(reader)
    assert set(line.believed("north")) == {b"1", b"2"}


# --- a letter that somebody wrote, elsewhere -------------------------------------------------------------------------


def test_a_letter_that_is_sent_back_to_its_sender_is_not_believed(line: Line) -> None:
    async def attack() -> None:
        await line.ask(b"1")
        await line.ask(b"2")
        asked, answered = line.frames("ask")[-1], line.frames("answer")[-1]
        line.deliver("tacit.ask.north", answered)
        line.alter = lambda where, frame: [asked] if where.startswith("tacit.answer") else [frame]
        await line.ask_in_vain(b"3")

    on(line, attack)
    assert "has no tag of its session" in line.not_believed("north")
    assert "has no tag of its session" in line.not_believed("coordinator")
    assert line.believed("north").count(b"2") == 1


def test_a_letter_that_is_sent_back_is_not_believed_under_its_own_name_either() -> None:
    """Not because of what its head says: in the head of the other direction it would still have no tag."""
    session, accepted = ends()
    own = accepted.find(session.name)
    assert own is not None
    answer = write_letter(NORTH, kind="ask", recipient="coordinator", body=b"mine", about="")
    with pytest.raises(WireError, match="has no tag of its session"):
        read(tagged(replace(answer, sender="coordinator", recipient="north"), own), accepted)


def test_a_replay_in_the_same_session_is_believed_once(line: Line) -> None:
    async def attack() -> None:
        await line.ask(b"1")
        line.alter = lambda _, frame: [frame, frame, frame]
        await line.ask(b"2")

    on(line, attack)
    assert "came twice" in line.not_believed("north")
    assert line.believed("north") == [b"1", b"2"]


def test_a_replay_in_another_session_is_not_believed(line: Line) -> None:
    async def attack() -> None:
        await line.ask(b"1")
        await line.ask(b"2")
        old = line.frames("ask")[-1]
        line.start("north")  # it has forgotten every nonce, and the session
        line.deliver("tacit.ask.north", old)
        await line.settle()
        with soon_again():
            await line.ask(b"3")
        await line.settle()
        await line.ask(b"4")
        new = line.frames("ask")[-1]
        assert new[16:32] != old[16:32]
        line.deliver("tacit.ask.north", old)
        line.deliver("tacit.ask.north", old[:16] + new[16:32] + old[32:])  # under the name of the new one
        line.deliver("tacit.ask.north", old[:16] + new[16:80] + old[80:])  # and with its tag

    on(line, attack)
    said = line.not_believed("north")
    assert said.count("of a session that is not known here") == 3  # the third is the first one to it after the restart
    assert said.count("has no tag of its session") == 2
    assert list(dict.fromkeys(line.believed("north"))) == [b"1", b"2", b"3", b"4"]
    assert line.believed("north")[:3] == [b"1", b"2", b"3"]


def test_a_late_answer_of_another_session_is_not_believed(line: Line) -> None:
    async def attack() -> None:
        await line.ask(b"1")
        await line.ask(b"2")
        old = line.frames("answer")[-1]
        line.exchange = line.new_exchange()  # a run is resumed by another process
        line.alter = lambda where, frame: [old] if where.startswith("tacit.answer") else [frame]
        await line.ask_in_vain(b"2")

    on(line, attack)
    assert "of a session that is not known here" in line.not_believed("coordinator")


def test_a_letter_in_one_members_session_is_nothing_in_anothers(line: Line) -> None:
    async def attack() -> None:
        both = ("north", "south")
        await line.ask(b"1", both)
        await line.ask(b"2", both)
        line.deliver("tacit.ask.south", line.frames("ask", "north")[-1])
        line.alter = lambda where, frame: [frame] if "answer" not in where else [line.frames("answer", "south")[-1]]
        await line.ask_in_vain(b"3", both)

    on(line, attack)
    assert "of a session that is not known here" in line.not_believed("south")
    assert "in the name of 'north' is of a session that is not known here" in line.not_believed("coordinator")


def test_a_party_cannot_write_in_anothers_name_in_its_own_session() -> None:
    """South has a session of its own, and tags what it likes in it."""
    offered = OfferedSessions(COORDINATOR.member)
    souths = AcceptedSessions(SOUTH.member, COORDINATOR.member)
    norths = AcceptedSessions(NORTH.member, COORDINATOR.member)
    offered.take(SOUTH.member, souths.accept(offered.offer))
    offered.take(NORTH.member, norths.accept(offered.offer))
    session = offered.find(SOUTH.member)
    assert session is not None
    own = souths.find(session.name)
    assert own is not None
    answer = write_letter(NORTH, kind="answer", recipient="coordinator", body=b"of north")
    with pytest.raises(WireError, match="is of a session that is not known here"):
        read_letter(
            tagged(answer, own), sender=NORTH.member, recipient="coordinator", kinds=("answer",),
            find=lambda _: offered.find(SOUTH.member),
        )  # fmt: skip
    with pytest.raises(WireError, match="a letter of 'north' to 'coordinator' was delivered"):
        read_letter(
            tagged(answer, own), sender=SOUTH.member, recipient="coordinator", kinds=("answer",),
            find=lambda _: offered.find(SOUTH.member),
        )  # fmt: skip


def test_a_member_that_brings_anothers_key_has_no_session_of_anothers() -> None:
    offered = OfferedSessions(COORDINATOR.member)
    norths = AcceptedSessions(NORTH.member, COORDINATOR.member)
    accepted = norths.accept(offered.offer)
    offered.take(SOUTH.member, accepted)  # south signs north's key as its own
    taken = offered.find(SOUTH.member)
    assert taken is not None
    assert norths.find(taken.name) is None
    with pytest.raises(WireError, match="is of a session that is not known here"):
        read(tagged(question(), taken), norths)


# --- the beginning of a session --------------------------------------------------------------------------------------


def test_an_offer_that_somebody_takes_out_or_exchanges_breaks_the_signature(line: Line) -> None:
    stranger = OfferedSessions(Identity("coordinator", "coordinator", b"x" * 32).member)

    def without(where: str, frame: bytes) -> list[bytes]:
        if not where.startswith("tacit.ask"):
            return [frame]
        letter = read_letter(frame, sender=COORDINATOR.member, recipient="north", kinds=("ask",))
        forged = [signed(replace(letter, key=key), NORTH) for key in (b"", stranger.offer, *SMALL_ORDER)]
        swapped = [frame.replace(letter.key, key) for key in (stranger.offer, *SMALL_ORDER)]
        return [frame[:80] + one[80:] for one in forged] + swapped

    async def attack() -> None:
        line.alter = without
        await line.ask_in_vain(b"1")

    on(line, attack)
    assert "is not signed by it" in line.not_believed("north")
    assert line.believed("north") == []
    assert line.services["north"]._sessions._names == {}


def test_a_key_that_somebody_puts_into_a_reply_begins_no_session(line: Line) -> None:
    """The man in the middle would have one session with each end; neither end signs his key."""
    him = AcceptedSessions(line.members["north"], COORDINATOR.member)

    def in_the_middle(where: str, frame: bytes) -> list[bytes]:
        if not where.startswith("tacit.answer"):
            return [frame]
        letter = read_letter(frame, sender=line.members["north"], recipient="coordinator", kinds=("answer",))
        return [frame.replace(letter.key, him.accept(letter.key[:KEY_BYTES]))]

    async def attack() -> None:
        line.alter = in_the_middle
        await line.ask_in_vain(b"1")

    on(line, attack)
    assert "is not signed by it" in line.not_believed("coordinator")
    assert line.exchange._sessions.find(line.members["north"]) is None


def test_what_travels_does_not_tell_the_keys() -> None:
    """Who sees C, P and all letters, and guesses that one of the public values is a key, makes no tag."""
    session, accepted = ends()
    offer, (key, _) = next(iter(accepted._accepted.items()))
    for guess in (offer, key[KEY_BYTES:], session.name * 2, COORDINATOR.member.letter_key, NORTH.member.letter_key):
        forged = LetterSession(name=session.name, peer="north", _own=guess, _others=guess)
        with pytest.raises(WireError, match="has no tag of its session"):
            read(tagged(question(), forged), accepted)
    stranger = os.urandom(KEY_BYTES)  # who derives keys as the two ends do, and has neither secret
    for public in (offer, key[KEY_BYTES:]):
        down, up, name = _derive(stranger, public, (COORDINATOR.member, offer), (NORTH.member, key[KEY_BYTES:]))
        assert name == session.name
        assert not {down, up} & {session._own, session._others}
    assert session._own.hex() not in repr(session)
    assert len({session._own, session._others, session.name}) == 3


@pytest.mark.parametrize("offer", [*SMALL_ORDER, b"short", bytes(33)])
def test_a_coordinator_that_offers_no_key_gets_its_answers_signed(line: Line, offer: bytes) -> None:
    """A key of small order would make a session that everybody knows the keys of."""

    async def attack() -> None:
        line.exchange._sessions.offer = offer
        assert await line.ask(b"1") == {"north": b"to 1"}
        assert await line.ask(b"2") == {"north": b"to 2"}

    on(line, attack)
    assert [frame[:16] for frame in line.frames("answer")] == [SIGNED, SIGNED]
    assert line.services["north"]._sessions._names == {}
    assert "the key of a session" in line.not_believed("north")


@pytest.mark.parametrize("key", [*SMALL_ORDER, b"short", bytes(33), b""])
def test_a_member_that_accepts_with_no_key_begins_no_session(key: bytes) -> None:
    offered = OfferedSessions(COORDINATOR.member)
    with pytest.raises(WireError, match="the key of a session"):
        offered.take(NORTH.member, offered.offer + key)
    offered.take(NORTH.member, OfferedSessions(COORDINATOR.member).offer + bytes(32))  # of another process: not ours
    assert offered.find(NORTH.member) is None


def test_nobody_is_talked_into_an_older_or_shorter_form() -> None:
    session, accepted = ends()
    frame = tagged(question(), session)
    for version in (b"tacit letter 2\0\0", b"tacit session 0\0", bytes(16)):
        with pytest.raises(WireError, match="no letter of this version"):
            read(version + frame[16:], accepted)
    with pytest.raises(WireError, match="is not signed by it"):  # a tag is no signature
        read(SIGNED + frame[16:], accepted)
    proper = signed(question(), COORDINATOR)
    with pytest.raises(WireError, match="is of a session that is not known here"):  # nor a signature a tag
        read(TAGGED + proper[16:], accepted)
    with pytest.raises(WireError, match="is of a session that is not known here"):  # where sessions are not spoken of
        read_letter(frame, sender=COORDINATOR.member, recipient="north", kinds=("ask",))


def test_an_old_offer_that_is_replayed_helps_nobody(line: Line) -> None:
    """The member answers it, in a session that only the process which made the offer could use."""

    async def attack() -> None:
        await line.ask(b"1")
        offered = line.frames("ask")[0]
        line.start("north")  # so that it takes the letter once more
        line.deliver("tacit.ask.north", offered)
        await line.settle()
        with soon_again():
            assert await line.ask(b"2") == {"north": b"to 2"}

    on(line, attack)
    assert len(line.services["north"]._sessions._names) == 1
    assert line.believed("north")[:3] == [b"1", b"1", b"2"]  # the guard knows the question: it gives the stored answer


# --- what a session does not outlive ---------------------------------------------------------------------------------


def test_new_keys_of_a_member_end_its_session() -> None:
    offered = OfferedSessions(COORDINATOR.member)
    offered.take(NORTH.member, AcceptedSessions(NORTH.member, COORDINATOR.member).accept(offered.offer))
    assert offered.find(NORTH.member) is not None
    assert offered.find(Identity("north", "party", b"N" * 32).member) is None


def test_letters_to_everybody_are_signed(line: Line) -> None:
    """A session has two ends: the coordinator must not tell one member another study than the others."""

    async def attack() -> None:
        await line.ask(b"1")
        session = line.exchange._sessions.find(line.members["north"])
        assert session is not None
        study = write_letter(COORDINATOR, kind="study", recipient="*", body=b"another", study="s")
        line.deliver("tacit.study.s", tagged(study, session))

    on(line, attack)
    assert "of a session that is not known here" in line.not_believed("north")
    assert line.believed("north") == [b"1"]


def test_sessions_without_end_fill_no_memory() -> None:
    accepted = AcceptedSessions(NORTH.member, COORDINATOR.member)
    first = OfferedSessions(COORDINATOR.member)
    first.take(NORTH.member, accepted.accept(first.offer))
    session = first.find(NORTH.member)
    assert session is not None
    again = accepted.accept(first.offer)
    for _ in range(200):
        accepted.accept(OfferedSessions(COORDINATOR.member).offer)
    assert len(accepted._accepted) == len(accepted._names) == 64
    assert accepted.find(session.name) is None  # it is signed to, and begins anew
    assert accepted.accept(first.offer) != again
