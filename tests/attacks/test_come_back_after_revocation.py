"""Somebody who was revoked, or a coordinator that brings it back, wants to be added up with the others again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tacit.daemon.coordinator.rotating import rotate_key
from tacit.daemon.party.settings import DataSource, write_party_file
from tacit.errors import CenterError, RunError, SettingError, WireError
from tacit.federation.group import SumGroup, size_statement
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.identity import Identity
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.member_list import MemberList
from tacit.federation.member.rotation import Rotation
from tacit.federation.member.standing import FILE
from tacit.federation.nats.kind import BEGIN
from tacit.federation.nats.letter import Letter
from tacit.federation.nats.server import ServerSettings
from tacit.rand import Rng
from tacit.secure.bound import NormBound
from tacit.secure.envelope import Label, seal, sum_group_digest
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback, free_port, records, wait_for
from ..secure.center.conftest import mark
from ..secure.center.signed_center import SignedCenter
from .test_exchange_a_key import NEW_SOUTH, NORTH, SOUTH, members, party_handler, rotation, tell

WEST = Identity("west", "party", b"w" * 32)


@pytest.fixture
def known(tmp_path: Path) -> KnownMembers:
    made = KnownMembers(tmp_path)
    made.believe_all()
    made.follow(members(1, NORTH, SOUTH, WEST))
    return made


@pytest.mark.parametrize("revoked", [("south",), ()])
def test_who_is_revoked_or_left_out_is_gone(known: KnownMembers, tmp_path: Path, revoked: tuple[str, ...]) -> None:
    assert known.follow(members(2, NORTH, WEST, revoked=revoked)).gone == ("south",)
    for read in (known, KnownMembers(tmp_path)):
        assert set(read.keys()) == {"north", "west"}
        assert "south" not in read.all()
        assert read.current({"south": SOUTH.member.letter_key, "west": WEST.member.letter_key}) == {
            "west": WEST.member.letter_key
        }


def test_an_older_list_brings_nobody_back(known: KnownMembers, tmp_path: Path) -> None:
    known.follow(members(2, NORTH, WEST, revoked=("south",)))
    for old in (members(1, NORTH, SOUTH, WEST), members(2, NORTH, SOUTH, WEST), members(-5, SOUTH)):
        with pytest.raises(WireError, match="is not newer than list 2, which was seen before"):
            KnownMembers(tmp_path).follow(old)
    assert set(known.keys()) == {"north", "west"}
    assert known.follow(members(2, NORTH, WEST, revoked=("south",))).gone == ()  # the same again is no fault


def test_a_newer_list_brings_nobody_back_either(known: KnownMembers) -> None:
    known.follow(members(2, NORTH, WEST, revoked=("south",)))
    changes = known.follow(members(3, NORTH, SOUTH, WEST))
    assert [member.name for member in changes.disputed] == ["south"]
    assert set(known.keys()) == {"north", "west"}
    known.follow(members(4, NORTH, NEW_SOUTH, WEST, rotations=(rotation(SOUTH, NEW_SOUTH),)))
    assert set(known.keys()) == {"north", "west"}  # nor with new keys
    with pytest.raises(SettingError, match="ask it by telephone"):
        known.accept_key("south", SOUTH.member.fingerprint)
    known.accept_key("south", NEW_SOUTH.member.fingerprint)  # the owner may
    assert known.keys()["south"] == NEW_SOUTH.member.letter_key


def test_a_damaged_file_brings_nobody_back(known: KnownMembers, tmp_path: Path) -> None:
    known.follow(members(2, NORTH, WEST, revoked=("south",)))
    for text in ("{}", "not json", '{"number": 1}'):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(SettingError, match="damaged"):
            KnownMembers(tmp_path).keys()


def test_a_party_refuses_a_run_with_somebody_who_was_revoked(tmp_path: Path) -> None:
    handler = party_handler(tmp_path, ())
    own = handler._folder.identity
    study = Study.parse(STUDY)
    (tmp_path / "records.csv").write_text("age,treated,recovered\n" + "30,1,yes\n60,0,no\n" * 20)
    accepted = {one.name: one.member.letter_key for one in (SOUTH, WEST)}
    handler._consents.keep(study)
    handler._consents.decide(study.digest(), "in", 5, accepted)
    everybody = MemberList(number=1, members=(own.member, SOUTH.member, WEST.member))
    tell(handler, everybody)

    def begin(run: str, *who: Identity) -> str:
        sizes = {"north": 40, **{one.name: 30 for one in who}}
        signatures = {
            one.name: one.sign(size_statement(study.digest(), one.name, sizes[one.name])) for one in (own, *who)
        }
        group = SumGroup.of(sizes, quorum=len(sizes), signatures=signatures)
        letter = Letter(
            kind=BEGIN, study=study.digest(), run=run, sender="coordinator", recipient="north", nonce="0" * 32,
            time=0.0, body=group.encode(),
        )  # fmt: skip
        reply = handler.handle(letter)
        assert reply is not None
        return f"{reply.kind} {reply.body.decode(errors='replace')}"

    assert begin("one", SOUTH, WEST).startswith("begin")
    tell(handler, MemberList(number=2, members=(own.member, WEST.member), revoked=("south",)))
    assert "'south', who was revoked" in begin("two", SOUTH, WEST)
    assert "'south', who was revoked" in begin("one", SOUTH, WEST)  # a run that had begun stops too
    tell(handler, everybody)  # an old list, replayed by whoever has the server
    tell(handler, MemberList(number=3, members=everybody.members))  # a new one of a coordinator that regrets
    assert "'south', who was revoked" in begin("three", SOUTH, WEST)
    new_west = Identity("west", "party", b"v" * 32)
    steps = (Rotation.make((WEST, WEST.member), (new_west, new_west.member)),)
    tell(handler, MemberList(number=4, members=(own.member, new_west.member), rotations=steps))
    assert "the size of 'west' is not the one" in begin("four", WEST)  # with the old key
    assert begin("four", new_west).startswith("begin")
    handler.close()


def test_a_node_adds_up_nothing_of_somebody_who_was_revoked(known: KnownMembers) -> None:
    center = SignedCenter(())
    center.know(known.keys)

    def ask(context: str) -> list[int]:
        keys = {one.name: one.member.letter_key for one in (NORTH, SOUTH)}
        parts = {}
        for one in (NORTH, SOUTH):
            label = Label(
                context=context, party=one.name, n_parties=2, sum_group=sum_group_digest(keys),
                bound=(NormBound(size=2, norm=3),), ledger=mark(),
            )  # fmt: skip
            parts[one.name] = seal(np.array([1, 2]), label, center.keys, rng=Rng.system(), sign=one.sign)
        return center.open_sum(context, parts).tolist()

    center.group = ("north", "south")
    assert ask("one") == [2, 4]
    known.follow(members(2, NORTH, WEST, revoked=("south",)))
    with pytest.raises(CenterError, match="knows no party 'south'"):
        ask("two")


def test_a_revocation_raises_the_number_and_names_who_is_out(tmp_path: Path) -> None:
    coordinator = CoordinatorFolder.make(tmp_path / "coordinator", ServerSettings(port=14999), None)
    for one in (NORTH, SOUTH):
        coordinator.admit(coordinator.invite(Invite(name=one.name, role="party", without_center=True)).id, one.member)
    before = coordinator.roster.member_list()
    coordinator.revoke("south")
    after = coordinator.roster.member_list()
    assert after.number > before.number
    assert (after.members, after.revoked) == ((NORTH.member,), ("south",))
    coordinator.close()


def test_a_list_that_is_none_is_refused() -> None:
    for garbage in (b"", b"N", members(9, NORTH).encode()[:-1]):
        with pytest.raises(WireError, match="does not say who belongs"):
            MemberList.decode(garbage)


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    made = Loopback(tmp_path_factory.mktemp("revoking"))
    CoordinatorFolder.make(made.coordinator, ServerSettings(port=free_port()), None).close()
    try:
        made.start("coordinator", "coordinator")
        for name in ("north", "south", "west"):
            made.invite(name, without_center=True)
            records(40, 1).to_csv(made.root / f"{name}.csv", index=False)
            write_party_file(made.folder(name), DataSource(file=made.root / f"{name}.csv"))
        for name in ("north", "west"):
            made.start(name, "party")
        yield made
    finally:
        made.close()


def test_a_revocation_and_a_rotation_reach_those_who_are_there_and_those_who_come_later(federation: Loopback) -> None:
    known = KnownMembers(federation.folder("north"))
    known.believe_all()
    wait_for(lambda: set(known.keys()) == {"north", "south", "west"}, "the list of members")
    coordinator = CoordinatorFolder(federation.coordinator)
    coordinator.revoke("south")  # as `tacit coordinator revoke` does, in a process of its own
    coordinator.close()
    wait_for(lambda: known.gone() == {"south"}, "the revocation at north")
    federation.stop("west")
    old, new = rotate_key(federation.folder("west"), "party")
    assert MemberFolder.load(federation.folder("west"), "party").member == new != old
    wait_for(lambda: known.keys().get("west") == new.letter_key, "west's new keys at north")
    wait_for(lambda: known.current({"west": old.letter_key}) == {"west": new.letter_key}, "what west is now")
    wait_for(lambda: '"key-rotated", "member": "west"' in federation.journal("north"), "the owner's note")
    federation.start("west", "party")  # with its new keys
    assert not (federation.folder("west") / "next").exists()
    federation.stop("north")
    federation.start("north", "party")  # which is told everything again
    assert federation.journal("north").count('"revoked"') == 1  # not with every list anew
    again, third = rotate_key(federation.folder("west"), "party")
    assert again == new
    wait_for(lambda: known.keys().get("west") == third.letter_key, "west's third keys at north")
    wait_for(lambda: known.current({"west": old.letter_key}) == {"west": third.letter_key}, "two steps")
    with pytest.raises(RunError, match="does not know this key"):
        rotate_key(federation.folder("south"), "party")
