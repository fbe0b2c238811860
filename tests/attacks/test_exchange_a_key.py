"""A coordinator wants to exchange a key that an owner pinned, or to be followed to a key of its own."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tacit.daemon.center.handler import NodeHandler, prepare_engine
from tacit.daemon.coordinator.rotating import rotated
from tacit.daemon.party.anchor import make_ledger
from tacit.daemon.party.handler import PartyHandler
from tacit.errors import CenterError, SettingError, WireError
from tacit.federation.member.address import Address
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.folder import MemberFolder, Pinned
from tacit.federation.member.identity import Identity, Member, Role
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.member_list import MemberList
from tacit.federation.member.node_card import NodeCard, Peers
from tacit.federation.member.rotation import MOST_ROTATIONS_EACH, Rotation, successor
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import MEMBERS, ROTATE, most_bytes
from tacit.federation.nats.letter import read_letter, signed, write_letter
from tacit.federation.nats.server import ServerSettings

COORDINATOR = Identity("coordinator", "coordinator", b"c" * 32)
NORTH, SOUTH = Identity("north", "party", b"n" * 32), Identity("south", "party", b"s" * 32)
NEW_SOUTH = Identity("south", "party", b"t" * 32)
FALSE_SOUTH = Identity("south", "party", b"f" * 32)


def rotation(old: Identity, new: Identity) -> Rotation:
    return Rotation.make((old, old.member), (new, new.member))


def members(number: int, *who: Identity, **facts: object) -> MemberList:
    return MemberList(number=number, members=tuple(one.member for one in who), **facts)  # type: ignore[arg-type]


@pytest.fixture
def known(tmp_path: Path) -> KnownMembers:
    made = KnownMembers(tmp_path)
    made.believe_all()
    made.follow(members(1, NORTH, SOUTH))
    return made


def test_a_list_exchanges_no_key(known: KnownMembers, tmp_path: Path) -> None:
    changes = known.follow(members(2, NORTH, FALSE_SOUTH))
    assert [member.name for member in changes.disputed] == ["south"]
    assert known.keys()["south"] == SOUTH.member.letter_key
    assert KnownMembers(tmp_path).current({"south": SOUTH.member.letter_key}) == {"south": SOUTH.member.letter_key}
    assert known.follow(members(3, NORTH, FALSE_SOUTH)).disputed == ()  # told once, not with every list


def test_changes_of_invented_keys_fill_no_disk(known: KnownMembers, tmp_path: Path) -> None:
    """The coordinator signs them itself, with keys that nobody pinned, and sends list after list."""
    invented = [Identity("south", "party", bytes([1, k]) * 16) for k in range(81)]
    steps = [rotation(old, new) for old, new in pairwise(invented)]
    for number in range(2, 10):
        part = steps[10 * (number - 2) : 10 * (number - 1)]
        known.follow(members(number, NORTH, SOUTH, rotations=tuple(part)))
    assert len(known.rotations()) == MOST_ROTATIONS_EACH
    assert (tmp_path / "standing.json").stat().st_size < 2000 * MOST_ROTATIONS_EACH
    assert known.keys()["south"] == SOUTH.member.letter_key


def test_only_the_owners_word_brings_a_key_that_the_old_one_did_not_sign(known: KnownMembers) -> None:
    known.follow(members(2, NORTH, FALSE_SOUTH))
    for wrong in (SOUTH.member.fingerprint, NEW_SOUTH.member.fingerprint, "", "south"):
        with pytest.raises(SettingError, match=r"ask it by telephone"):
            known.accept_key("south", wrong)
    assert known.keys()["south"] == SOUTH.member.letter_key
    with pytest.raises(SettingError, match="nothing to accept"):
        known.accept_key("north", NORTH.member.fingerprint)
    known.accept_key("south", FALSE_SOUTH.member.fingerprint)
    assert known.keys()["south"] == FALSE_SOUTH.member.letter_key
    # A consent was given to the old key, and stays with it.
    assert known.current({"south": SOUTH.member.letter_key}) == {"south": SOUTH.member.letter_key}


def test_a_key_that_the_old_one_signed_is_followed_and_told(known: KnownMembers) -> None:
    step = rotation(SOUTH, NEW_SOUTH)
    changes = known.follow(members(2, NORTH, NEW_SOUTH, rotations=(step,)))
    assert [(one.old, one.new) for one in changes.rotated] == [(SOUTH.member, NEW_SOUTH.member)]
    assert known.keys()["south"] == NEW_SOUTH.member.letter_key
    assert known.current({"south": SOUTH.member.letter_key}) == {"south": NEW_SOUTH.member.letter_key}
    assert known.rotations() == (step,)


def test_a_rotation_that_the_old_key_did_not_sign_leads_nowhere(known: KnownMembers) -> None:
    right = rotation(SOUTH, FALSE_SOUTH)
    forged = {
        "signed with the new key alone": replace(right, signature=FALSE_SOUTH.sign(right._text)),
        "signed by the coordinator": replace(right, signature=COORDINATOR.sign(right._text)),
        "not signed": replace(right, signature=b""),
        "signed for other keys": replace(rotation(SOUTH, NEW_SOUTH), new=FALSE_SOUTH.member),
        "of another member": rotation(NORTH, Identity("north", "party", b"f" * 32)),
        "of keys that nobody pinned": rotation(NEW_SOUTH, FALSE_SOUTH),
        "without the new key's proof": replace(right, proof=b""),
    }
    for number, (how, step) in enumerate(forged.items(), start=2):
        known.follow(members(number, NORTH, FALSE_SOUTH, rotations=(step,)))
        assert known.keys()["south"] == SOUTH.member.letter_key, how
        assert known.current({"south": SOUTH.member.letter_key}) == {"south": SOUTH.member.letter_key}, how
    known.follow(members(100, NORTH, FALSE_SOUTH, rotations=(right,)))  # what they lacked
    assert known.keys()["south"] == FALSE_SOUTH.member.letter_key


def test_a_stolen_key_that_was_rotated_leads_nobody(known: KnownMembers) -> None:
    """Neither a consent that was given to it, nor whoever pinned it or what followed it."""
    first, second = rotation(SOUTH, NEW_SOUTH), rotation(SOUTH, FALSE_SOUTH)
    known.follow(members(2, NORTH, NEW_SOUTH, rotations=(first,)))
    for number, told in enumerate(((second,), (second, first), (first, second)), start=3):
        known.follow(members(number, NORTH, FALSE_SOUTH, rotations=told))
        assert known.keys()["south"] == NEW_SOUTH.member.letter_key
        assert known.current({"south": SOUTH.member.letter_key}) == {"south": NEW_SOUTH.member.letter_key}
        assert known.successor(SOUTH.member) == NEW_SOUTH.member


def test_keys_cannot_lead_in_a_circle_or_to_another_name() -> None:
    circle = (rotation(SOUTH, NEW_SOUTH), rotation(NEW_SOUTH, SOUTH))
    assert successor(SOUTH.member, circle) in (SOUTH.member, NEW_SOUTH.member)  # and ends
    with pytest.raises(WireError, match="for another member, or none"):
        rotation(SOUTH, NORTH).check()
    with pytest.raises(WireError, match="for another member, or none"):
        rotation(SOUTH, SOUTH).check()


def node(name: str, secret: bytes) -> tuple[Identity, Member]:
    identity = Identity(name, "center", secret * 32)
    return identity, identity.member


def party_handler(folder: Path, center: tuple[Member, ...]) -> PartyHandler:
    pinned = Pinned(
        address=Address(url="tls://nowhere:1", authority=""), coordinator=COORDINATOR.member, center=center
    )  # fmt: skip
    identity = Identity.make("north", "party", folder)
    MemberFolder.write(folder, identity.member, pinned, None)
    (folder / "records.csv").write_text("x\n1\n")
    (folder / "party.toml").write_text('[data]\nfile = "records.csv"\n')
    make_ledger(folder, "north")
    return PartyHandler(MemberFolder.load(folder, "party"), Journal("north", io.StringIO()))


def test_a_party_seals_to_a_nodes_new_key_only_if_the_pinned_one_signed_it(tmp_path: Path) -> None:
    nodes = [node(name, name[-1].encode()) for name in ("node-a", "node-b", "node-c")]
    pinned = tuple(member for _, member in nodes)
    handler = party_handler(tmp_path, pinned)
    assert handler._seal_keys() == tuple(member.seal_key for member in pinned)
    false, true = node("node-a", b"f"), node("node-a", b"t")
    # The first list that this party ever sees tells of a false node: what the invitation pinned stays.
    tell(handler, MemberList(number=1, members=(false[1], *pinned[1:])))
    assert handler._seal_keys()[0] == pinned[0].seal_key
    steps = (Rotation.make(nodes[0], true),)
    tell(handler, MemberList(number=2, members=(true[1], *pinned[1:]), rotations=steps))
    assert handler._seal_keys() == (true[1].seal_key, *(member.seal_key for member in pinned[1:]))
    tell(handler, MemberList(number=3, members=pinned[1:], revoked=("node-a",)))
    assert handler._seal_keys() == ()  # nothing is sealed where a node was revoked
    told = [line.decision["decision"] for line in handler._log.lines()]
    assert "revoked" in told
    handler.close()


def tell(handler: PartyHandler | NodeHandler, told: MemberList) -> None:
    """What the daemon does with a list that the coordinator signed."""
    frame = signed(write_letter(COORDINATOR, kind=MEMBERS, recipient="*", body=told.encode()), COORDINATOR)
    handler.handle(read_letter(frame, sender=COORDINATOR.member, recipient="*", kinds=(MEMBERS,)))


def node_handler(folder: Path, nodes: list[tuple[Identity, Member]]) -> NodeHandler:
    (folder / "identity.key").write_text("a" * 64)
    identity = Identity.load("node-a", "center", folder)
    nodes[0] = (identity, identity.member)
    pinned = Pinned(address=Address(url="tls://x:1", authority=""), coordinator=COORDINATOR.member, center=())
    MemberFolder.write(folder, identity.member, pinned, 0)
    prepare_engine(folder, None)
    return NodeHandler(MemberFolder.load(folder, "center"), Journal("node-a", io.StringIO()))


def test_a_node_meets_a_peer_with_new_keys_only_if_the_pinned_ones_signed_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.daemon.center.handler.EngineProcess", lambda *_: None)
    nodes = [node(name, name[-1].encode()) for name in ("node-a", "node-b", "node-c")]
    handler = node_handler(tmp_path, nodes)

    def meet(*others: tuple[Identity, Member]) -> None:
        cards = [NodeCard.make(identity, "127.0.0.1:1", "") for identity, _ in others]
        everybody = (nodes[0][1], *(member for _, member in others))
        handler._meet(Peers(session="s", members=everybody, cards=(handler._card, *cards)))

    meet(*nodes[1:])
    true, false = node("node-b", b"t"), node("node-b", b"f")
    with pytest.raises(CenterError, match="other keys than those pinned"):
        meet(false, nodes[2])
    tell(handler, MemberList(number=1, members=tuple(member for _, member in nodes)))
    steps = (Rotation.make(nodes[1], true),)
    tell(handler, MemberList(number=2, members=(nodes[0][1], true[1], nodes[2][1]), rotations=steps))
    with pytest.raises(CenterError, match="other keys than those pinned"):
        meet(false, nodes[2])
    meet(true, nodes[2])
    with pytest.raises(CenterError, match="other keys than those pinned"):
        meet(nodes[1], nodes[2])  # the old keys are no longer believed
    tell(handler, MemberList(number=3, members=(nodes[0][1], nodes[2][1]), revoked=("node-b",)))
    with pytest.raises(CenterError, match="'node-b' was revoked"):
        meet(true, nodes[2])


@pytest.fixture
def coordinator(tmp_path: Path) -> CoordinatorFolder:
    made = CoordinatorFolder.make(tmp_path / "coordinator", ServerSettings(port=14999), None)
    for one in (NORTH, SOUTH):
        made.admit(made.invite(Invite(name=one.name, role="party", without_center=True)).id, one.member)
    return made


def asked(step: Rotation, signer: Identity) -> bytes:
    return signed(write_letter(signer, kind=ROTATE, recipient="coordinator", body=step.encode()), signer)


def test_a_member_rotates_its_own_keys_and_nobody_elses(coordinator: CoordinatorFolder) -> None:
    with pytest.raises(WireError, match="not signed by it"):
        rotated(coordinator, SOUTH.member, asked(rotation(SOUTH, FALSE_SOUTH), NORTH))
    _, done = rotated(coordinator, NORTH.member, asked(rotation(SOUTH, FALSE_SOUTH), NORTH))
    assert done is None
    stolen = Rotation.make(
        (SOUTH, SOUTH.member), (NEW_SOUTH, replace(NEW_SOUTH.member, nkey=NORTH.member.nkey))
    )  # fmt: skip
    _, done = rotated(coordinator, SOUTH.member, asked(stolen, SOUTH))
    assert done is None  # it would have taken over north's connection
    number = coordinator.roster.number
    step = rotation(SOUTH, NEW_SOUTH)
    _, done = rotated(coordinator, SOUTH.member, asked(step, SOUTH))
    assert done == step
    told = coordinator.roster.member_list()
    assert told.number == number + 1
    assert told.rotations == (step,)
    assert NEW_SOUTH.member in told.members
    users = coordinator.roster.users(coordinator.identity.member)
    assert NEW_SOUTH.member.nkey in users
    assert SOUTH.member.nkey not in users


def test_a_member_that_rotates_without_end_keeps_no_revocation_from_others(coordinator: CoordinatorFolder) -> None:
    """Every list tells all changes of keys. One that is longer than a letter may be would reach nobody any more."""
    keys = [SOUTH, *(Identity("south", "party", bytes([2, k]) * 16) for k in range(80))]
    done = [rotated(coordinator, old.member, asked(rotation(old, new), old))[1] for old, new in pairwise(keys)]
    assert [step is not None for step in done] == [True] * MOST_ROTATIONS_EACH + [False] * (80 - MOST_ROTATIONS_EACH)
    assert len(coordinator.roster.member_list().encode()) < most_bytes(MEMBERS) / 100
    coordinator.revoke("south")
    assert coordinator.roster.member_list().revoked == ("south",)


def test_roles_are_not_rotated() -> None:
    other: Role = "center"
    with pytest.raises(WireError, match="for another member, or none"):
        rotation(SOUTH, Identity("south", other, b"x" * 32)).check()
