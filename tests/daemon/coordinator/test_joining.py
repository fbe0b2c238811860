"""Identities, certificates, invitations and the roster."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import SettingError
from tacit.federation.member.address import Address, Credential
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.identity import Identity, Member
from tacit.federation.member.invitation import Invitation
from tacit.federation.member.roster import Roster, Ticket
from tacit.federation.nats.server import ServerSettings
from tacit.secure.certificate import days_left, issue_server, make_authority, tls_context


def identity(name: str = "north", role: str = "party", seed: bytes = b"n") -> Identity:
    return Identity(name, role, seed * 32)  # type: ignore[arg-type]


@pytest.fixture
def coordinator(tmp_path: Path) -> CoordinatorFolder:
    return CoordinatorFolder.make(tmp_path / "coordinator", ServerSettings(port=14999), None)


def test_a_secret_is_for_its_owner_and_is_never_written_over(tmp_path: Path) -> None:
    made = Identity.make("north", "party", tmp_path)
    path = tmp_path / "identity.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert Identity.load("north", "party", tmp_path).member == made.member
    with pytest.raises(SettingError, match="exists and is not written over"):
        Identity.make("north", "party", tmp_path)
    path.write_text("nonsense")
    with pytest.raises(SettingError, match="is not a secret that Tacit wrote"):
        Identity.load("north", "party", tmp_path)
    with pytest.raises(SettingError, match=r"cannot be read.*tacit party init"):
        Identity.load("north", "party", tmp_path / "nowhere")


def test_nothing_shown_holds_a_secret(tmp_path: Path) -> None:
    made = Identity.make("north", "party", tmp_path)
    secret = (tmp_path / "identity.key").read_text().strip()
    shown = repr(made) + json.dumps(made.member.as_dict()) + repr(Credential(name="n", nkey_seed=made.nkey_seed))
    assert secret not in shown
    assert made.nkey_seed not in shown


def test_one_secret_makes_different_keys_and_another_makes_others() -> None:
    one, two = identity().member, identity(seed=b"m").member
    assert len({one.letter_key, one.seal_key, two.letter_key, two.seal_key}) == 4
    assert one.nkey != two.nkey
    assert one.fingerprint != two.fingerprint


def test_a_members_description_is_read_strictly() -> None:
    form = identity().member.as_dict()
    assert Member.from_dict(form) == identity().member
    spoiled = [
        {**form, "nkey": form["nkey"][:-1] + "A"},  # the checksum
        {**form, "nkey": 'U" permissions: all'},
        {**form, "letter_key": "00"},
        {**form, "seal_key": "zz" * 32},
        {**form, "role": "king"},
        {key: value for key, value in form.items() if key != "name"},
    ]
    for bad in spoiled:
        with pytest.raises(SettingError, match=r"(does not|are none); ask for the file again"):
            Member.from_dict(bad)


def test_certificates_say_how_long_they_last(tmp_path: Path) -> None:
    make_authority(tmp_path)
    issue_server(tmp_path, ["localhost", "127.0.0.1"], days=10)
    assert 9.9 < days_left(tmp_path / "server.pem") < 10.1
    issue_server(tmp_path, ["localhost"], days=-1)
    assert days_left(tmp_path / "server.pem") < 0
    with pytest.raises(SettingError, match="cannot be read; ask the coordinator"):
        tls_context("not a certificate")


def test_the_address_must_be_encrypted() -> None:
    with pytest.raises(SettingError, match="must start with tls://; nothing travels in the open"):
        Address(url="nats://localhost:4222", authority="")


def test_a_folder_holds_one_coordinator(coordinator: CoordinatorFolder) -> None:
    with pytest.raises(SettingError, match="holds a coordinator already"):
        CoordinatorFolder.make(coordinator.path, ServerSettings(), None)
    with pytest.raises(SettingError, match="is not the folder of a coordinator"):
        CoordinatorFolder(coordinator.path / "nowhere")


def test_an_invitation_is_read_back(coordinator: CoordinatorFolder, tmp_path: Path) -> None:
    made = coordinator.invite(Invite(name="north", role="party", without_center=True))
    path = tmp_path / "north.invite"
    path.write_text(made.text())
    assert Invitation.read(path) == made
    assert made.nkey_seed not in repr(made)
    path.write_text("{}")
    with pytest.raises(SettingError, match="is not an invitation"):
        Invitation.read(path)
    path.write_text("not json")
    with pytest.raises(SettingError, match="damaged"):
        Invitation.read(path)


def test_a_party_is_not_invited_before_the_center_has_its_nodes(coordinator: CoordinatorFolder) -> None:
    with pytest.raises(SettingError, match=r"0 of 3 nodes have joined.*--without-center"):
        coordinator.invite(Invite(name="north", role="party"))


@pytest.mark.parametrize("name", ["", "North", "a.b", "a b", "coordinator", "*", ">", "a" * 64, "é"])
def test_a_name_must_fit_into_a_subject(coordinator: CoordinatorFolder, name: str) -> None:
    with pytest.raises(SettingError, match="cannot be used"):
        coordinator.invite(Invite(name=name, role="party", without_center=True))


def ticket(name: str = "north", role: str = "party", expires: float = 1e12, id_: str = "i") -> Ticket:
    return Ticket(id=id_, name=name, role=role, nkey=identity(seed=b"t").member.nkey, expires=expires)  # type: ignore[arg-type]


def test_an_invitation_admits_one_member_once(tmp_path: Path) -> None:
    roster = Roster(tmp_path / "roster.db")
    roster.invite(ticket())
    member = identity().member
    assert roster.admit("i", member) is None
    assert roster.admit("i", member) is None  # the same keys again: the welcome was lost
    with pytest.raises(SettingError, match="was used before"):
        roster.admit("i", identity(seed=b"x").member)
    with pytest.raises(SettingError, match="is a member already"):
        roster.invite(ticket(id_="j"))
    assert roster.members() == [member]


def test_nobody_joins_with_a_key_that_is_anothers(tmp_path: Path, coordinator: CoordinatorFolder) -> None:
    """The server gives permissions to keys: a second member with the same one would take them from the first."""
    roster = Roster(tmp_path / "roster.db")
    north, south = identity().member, identity("south", seed=b"s").member
    roster.invite(ticket())
    roster.admit("i", north)
    roster.invite(ticket("south", id_="j"))
    for stolen in (
        replace(south, nkey=north.nkey),
        replace(south, letter_key=north.letter_key),
        replace(south, nkey=ticket().nkey),
    ):
        with pytest.raises(SettingError, match="'south' brings a key that is another's"):
            roster.admit("j", stolen)
    made = coordinator.invite(Invite(name="south", role="party", without_center=True))
    with pytest.raises(SettingError, match="brings a key that is the coordinator's"):
        coordinator.admit(made.id, replace(south, nkey=coordinator.identity.member.nkey))
    assert roster.members() == [north]


def test_an_invitation_is_for_its_name_role_and_time(tmp_path: Path) -> None:
    roster = Roster(tmp_path / "roster.db")
    roster.invite(ticket())
    with pytest.raises(SettingError, match="for the party 'north', not the party 'south'"):
        roster.admit("i", identity("south").member)
    with pytest.raises(SettingError, match="for the party 'north', not the center 'north'"):
        roster.admit("i", identity(role="center").member)
    with pytest.raises(SettingError, match="not known here"):
        roster.admit("other", identity().member)
    roster.invite(ticket("late", expires=time.time() - 1, id_="l"))
    with pytest.raises(SettingError, match="has expired"):
        roster.admit("l", identity("late").member)


def test_a_second_invitation_makes_the_first_one_void(tmp_path: Path) -> None:
    roster = Roster(tmp_path / "roster.db")
    roster.invite(ticket(id_="first"))
    roster.invite(ticket(id_="second"))
    with pytest.raises(SettingError, match="not known here"):
        roster.admit("first", identity().member)
    roster.admit("second", identity().member)


def test_a_revoked_name_is_never_given_to_other_keys(tmp_path: Path) -> None:
    roster = Roster(tmp_path / "roster.db")
    roster.invite(ticket())
    roster.admit("i", identity().member)
    roster.revoke("north")
    assert roster.members() == []
    assert identity().member.nkey not in roster.users(identity("coordinator", "coordinator", b"c").member)
    with pytest.raises(SettingError, match="was revoked, and its name is not given again"):
        roster.invite(ticket(id_="j"))
    with pytest.raises(SettingError, match="'nobody' is no member"):
        roster.revoke("nobody")


def test_center_nodes_have_seats_and_there_are_three(tmp_path: Path) -> None:
    roster = Roster(tmp_path / "roster.db")
    for i, name in enumerate(("c", "a", "b")):
        roster.invite(ticket(name, "center", id_=name))
        assert roster.admit(name, identity(name, "center", name.encode()).member) == i
    assert [member.name for member in roster.members("center")] == ["c", "a", "b"]
    with pytest.raises(SettingError, match="has its 3 nodes"):
        roster.invite(ticket("d", "center", id_="d"))
    roster.revoke("a")
    roster.invite(ticket("d", "center", id_="d"))
    assert roster.admit("d", identity("d", "center", b"d").member) == 1


def test_a_key_may_do_what_its_role_needs_and_nothing_of_anothers(tmp_path: Path) -> None:
    roster = Roster(tmp_path / "roster.db")
    for i, name in enumerate(("north", "south")):
        roster.invite(ticket(name, id_=name))
        roster.admit(name, identity(name, seed=bytes([i])).member)
    users = roster.users(identity("coordinator", "coordinator", b"c").member)
    north = users[identity("north", seed=b"\0").member.nkey]
    assert not any("south" in subject for subject in (*north.publish, *north.subscribe))
    assert not any(subject in (">", "tacit.>", "$JS.>") for subject in (*north.publish, *north.subscribe))


def test_the_servers_files_hold_no_secret(coordinator: CoordinatorFolder) -> None:
    made = coordinator.invite(Invite(name="north", role="party", without_center=True))
    text = (coordinator.path / "members.conf").read_text() + (coordinator.path / "nats.conf").read_text()
    assert made.nkey_seed not in text
    assert coordinator.identity.nkey_seed not in text
    assert coordinator.identity.member.nkey in text
    assert "127.0.0.1" in text


def test_a_folder_of_another_role_is_named(tmp_path: Path, coordinator: CoordinatorFolder) -> None:
    MemberFolder.write(tmp_path, identity().member, coordinator.pinned, None)
    with pytest.raises(SettingError, match="does not describe a center"):
        MemberFolder.load(tmp_path, "center")
    with pytest.raises(SettingError, match="is not the folder of a party"):
        MemberFolder.load(tmp_path / "nowhere", "party")
