"""A center node adds up what a party sealed when its operator has accepted the party's fingerprint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tacit.cli.network.center import app
from tacit.errors import CenterError, SettingError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.identity import Identity
from tacit.federation.member.known_members import ACCEPTED, KnownMembers
from tacit.federation.nats.blocking import BlockingConnection

from ..conftest import Loopback
from .test_center import P, Q, nodes, sealed

__all__ = ["nodes"]  # a fixture


def test_nothing_of_a_party_is_added_up_before_every_operator_that_insists_accepted_it(nodes: Loopback) -> None:
    known_members = KnownMembers(nodes.folder("node-b"))
    known_members.insist()
    with BlockingConnection(CoordinatorFolder(nodes.coordinator)) as connection:
        center = connection.center()
        envelopes = sealed(center, np.array([1.0]), "c")
        with pytest.raises(CenterError, match="knows no party 'p', or its operator has not accepted it"):
            center.open_sum("c", envelopes)
        assert [member.name for member in known_members.accept({"p": P.member.fingerprint})] == ["p"]
        np.testing.assert_array_equal(center.open_sum("c", envelopes), [2**40])
        with pytest.raises(CenterError, match="knows no party 'q'"):
            center.open_sum("d", sealed(center, np.array([1.0]), "d", party=Q))


@pytest.fixture
def known(tmp_path: Path) -> KnownMembers:
    made = KnownMembers(tmp_path)
    made.learn([P.member, Q.member, Identity("node", "center", b"n" * 32).member])
    return made


def test_nobody_is_believed_until_accepted_or_until_the_operator_chooses_to_believe_all(known: KnownMembers) -> None:
    assert known.keys() == {}
    known.accept({"p": P.member.fingerprint.replace(" ", "").upper()})
    known.insist()  # forgets nothing
    assert known.keys() == {"p": P.member.letter_key}
    for stranger in ("r", "node"):
        with pytest.raises(SettingError, match=f"no party '{stranger}' was told of; known: p, q"):
            known.accept({"q": Q.member.fingerprint, stranger: Q.member.fingerprint})
    with pytest.raises(SettingError, match=f"'q' was told of with the fingerprint {Q.member.fingerprint}, not "):
        known.accept({"q": P.member.fingerprint})
    assert set(known.keys()) == {"p"}
    known.believe_all()
    assert set(known.keys()) == {"p", "q"}
    with pytest.raises(SettingError, match=r"first `tacit center serve --accept ask`"):
        known.accept({"q": Q.member.fingerprint})
    known.insist()
    assert known.keys() == {}


def test_what_is_accepted_are_keys_and_not_a_name(known: KnownMembers, tmp_path: Path) -> None:
    known.accept({"p": P.member.fingerprint})
    (tmp_path / "members.json").unlink()  # as an operator does who is told that p has new keys
    known.learn([Identity("p", "party", b"x" * 32).member])
    assert known.keys() == {}


def test_a_damaged_file_believes_nobody(known: KnownMembers, tmp_path: Path) -> None:
    (tmp_path / ACCEPTED).write_text("[]")
    with pytest.raises(SettingError, match=r"accepted\.json is damaged; write \{\} into it"):
        known.keys()


def test_the_operator_sees_who_waits_and_accepts_them(nodes: Loopback) -> None:
    folder = str(nodes.folder("node-a"))
    KnownMembers(nodes.folder("node-a")).insist()
    shown = CliRunner().invoke(app, ["members", "--folder", folder]).output
    assert shown.count("not accepted yet") == 2
    done = CliRunner().invoke(app, ["accept", "p", "--folder", folder])
    assert "say p=FINGERPRINT" in str(done.exception)
    done = CliRunner().invoke(app, ["accept", f"p={P.member.fingerprint}", "--folder", folder])
    assert done.exit_code == 0
    assert P.member.fingerprint in done.output
    lines = CliRunner().invoke(app, ["members", "--folder", folder]).output.splitlines()
    waiting = [line for line in lines if "not accepted yet" in line]
    assert len(waiting) == 1
    assert Q.member.fingerprint in waiting[0]


def test_the_choice_is_kept_until_another_is_made(nodes: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(_: object) -> None:
        return None

    monkeypatch.setattr("tacit.cli.network.center._serve", serve)
    folder = nodes.folder("node-a")
    believed = []
    for words in ([], ["--accept", "ask"], [], ["--accept", "all"]):
        done = CliRunner().invoke(app, ["serve", "--folder", str(folder), *words])
        assert done.exit_code == 0
        believed.append(sorted(KnownMembers(folder).keys()))
    assert believed == [["p", "q"], [], [], ["p", "q"]]
