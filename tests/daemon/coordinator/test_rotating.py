"""Rotating keys: a command that breaks off at any point can be given again, and ends with one set of keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli.network.center import app as center_app
from tacit.cli.network.party import app as party_app
from tacit.daemon.coordinator import rotating
from tacit.daemon.coordinator.rotating import rotate_key
from tacit.errors import RunError
from tacit.federation.member.address import Address
from tacit.federation.member.folder import MemberFolder, Pinned
from tacit.federation.member.identity import Identity, Role
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.member_list import MemberList
from tacit.federation.member.rotation import Rotation
from tacit.secure.center.node_key import key_of

COORDINATOR = Identity("coordinator", "coordinator", b"c" * 32)
SOUTH, OTHER = Identity("south", "party", b"s" * 32), Identity("south", "party", b"o" * 32)


def joined(path: Path, role: Role) -> MemberFolder:
    pinned = Pinned(address=Address(url="tls://nowhere:1", authority=""), coordinator=COORDINATOR.member, center=())
    member = Identity.make("north", role, path).member
    if role == "center":
        key_of(path)
    MemberFolder.write(path, member, pinned, 0 if role == "center" else None)
    return MemberFolder.load(path, role)


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[Rotation]:
    """What the coordinator was told; it agrees to everything."""
    told: list[Rotation] = []

    async def announce(_: MemberFolder, __: object, rotation: Rotation) -> None:
        rotation.check()
        told.append(rotation)

    monkeypatch.setattr(rotating, "_announce", announce)
    return told


@pytest.mark.parametrize("role", ["party", "center"])
def test_every_key_is_new_and_the_old_ones_are_gone(tmp_path: Path, role: Role, announced: list[Rotation]) -> None:
    before = joined(tmp_path, role)
    secrets = {path.name: path.read_bytes() for path in tmp_path.glob("*.key")}
    old, new = rotate_key(tmp_path, role)
    assert old == before.member
    assert (announced[0].old, announced[0].new) == (old, new)
    assert {new.nkey, new.letter_key, new.seal_key}.isdisjoint({old.nkey, old.letter_key, old.seal_key})
    after = MemberFolder.load(tmp_path, role)
    assert after.member == new
    assert after.identity.member.letter_key == new.letter_key
    assert all((tmp_path / name).read_bytes() != secret for name, secret in secrets.items())
    assert (tmp_path / "identity.key").stat().st_mode & 0o777 == 0o600
    if role == "center":
        assert bytes(key_of(tmp_path).public_key) == new.seal_key
    assert not (tmp_path / "next").exists()


@pytest.mark.parametrize("role", ["party", "center"])
@pytest.mark.parametrize("n_moves", [0, 1, 2])
def test_a_rotation_that_breaks_off_while_keys_are_swapped_goes_on(
    tmp_path: Path, role: Role, n_moves: int, announced: list[Rotation], monkeypatch: pytest.MonkeyPatch
) -> None:
    joined(tmp_path, role)
    right, left = Path.replace, [n_moves]

    def replace_then_die(self: Path, target: Path) -> Path:
        if self.parent.name == "next":
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
        return right(self, target)

    def write_then_die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", replace_then_die)
        broken.setattr(MemberFolder, "write", write_then_die)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            rotate_key(tmp_path, role)
    _, new = rotate_key(tmp_path, role)
    assert {rotation.new for rotation in announced} == {new}  # no second set of keys
    after = MemberFolder.load(tmp_path, role)
    assert (after.member, after.identity.member.letter_key) == (new, new.letter_key)
    if role == "center":
        assert bytes(key_of(tmp_path).public_key) == new.seal_key


def test_without_the_coordinator_the_old_keys_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, tried = joined(tmp_path, "party"), []

    async def announce(_: MemberFolder, __: object, rotation: Rotation) -> None:
        tried.append(rotation.new)
        raise RunError("cannot be reached")

    monkeypatch.setattr(rotating, "_announce", announce)
    for _ in range(2):
        with pytest.raises(RunError, match="cannot be reached"):
            rotate_key(tmp_path, "party")
        assert MemberFolder.load(tmp_path, "party").member == before.member
    assert tried[0] == tried[1]  # the coordinator may have heard the first


@pytest.mark.parametrize(("role", "app"), [("party", party_app), ("center", center_app)])
def test_the_owner_sees_how_members_stand_and_has_the_last_word(tmp_path: Path, role: Role, app: object) -> None:
    joined(tmp_path, role)
    known = KnownMembers(tmp_path)
    gone = Identity("gone", "party", b"g" * 32)
    known.follow(MemberList(number=1, members=(SOUTH.member, gone.member)))
    known.follow(MemberList(number=2, members=(OTHER.member,), revoked=("gone",)))
    folder = ["--folder", str(tmp_path)]
    shown = CliRunner().invoke(app, ["members", *folder]).output  # type: ignore[arg-type]
    assert "revoked      gone" in shown
    line = next(line for line in shown.splitlines() if line.startswith("NOT BELIEVED"))
    assert OTHER.member.fingerprint in line
    wrong = CliRunner().invoke(app, ["accept-key", "south", SOUTH.member.fingerprint, *folder])  # type: ignore[arg-type]
    assert wrong.exit_code != 0
    assert known.parties()["south"] == SOUTH.member
    done = CliRunner().invoke(app, ["accept-key", "south", OTHER.member.fingerprint, *folder])  # type: ignore[arg-type]
    assert done.exit_code == 0
    assert known.parties()["south"] == OTHER.member
