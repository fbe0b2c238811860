"""The coordinator wants old questions answered with fresh noise, by parties whose ledger was lost or restored."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tacit.cli.network.party_ledger import log as show_log
from tacit.daemon.party.anchor import open_ledger
from tacit.daemon.party.handler import PartyHandler
from tacit.daemon.party.settings import LEDGER, DataSource, write_party_file
from tacit.errors import CenterError, LogTampered, SettingError
from tacit.federation.group import SumGroup
from tacit.federation.guard import Guard
from tacit.federation.log import Log
from tacit.federation.member.address import Address
from tacit.federation.member.folder import MemberFolder, Pinned, read_json
from tacit.federation.member.identity import Identity
from tacit.federation.message import Answer, Question, question_digest
from tacit.federation.nats.journal import Journal
from tacit.federation.policy import Policy
from tacit.federation.seat import Bond
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.secure.bound import NormBound
from tacit.secure.center.center import Center, MessageCenter
from tacit.secure.center.node import NodeServer
from tacit.secure.envelope import Label, seal, sum_group_digest

from ..federation.conftest import addend, agreement, table

PARTIES = [Identity(name, "party", name[:1].encode() * 32) for name in ("north", "south", "west")]
KEYS = {party.name: party.member.letter_key for party in PARTIES}
GROUP = SumGroup.of(dict.fromkeys(KEYS, 20), quorum=3)
TIMES = 5  # a real attacker would take 200
AGREED = agreement(addend, epsilon=0.1, runs=1)


class Nodes(MessageCenter):
    """Three nodes with folders of their own, which know the parties' keys."""

    def __init__(self, root: Path) -> None:
        self._homes = [root / f"node{index}" for index in range(3)]
        for home in self._homes:
            home.mkdir()
        self.restart()

    def restart(self) -> None:
        self.nodes = [
            NodeServer(index, home=home, members=lambda: KEYS, peers=lambda: self.keys)
            for index, home in enumerate(self._homes)
        ]

    @property
    def keys(self) -> tuple[bytes, ...]:
        return tuple(node.public_key for node in self.nodes)

    def computing(self) -> Center:
        return self

    def asked(self, context: str) -> Sequence[str]:
        return list(KEYS)

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        return [node.handle(request) for node, request in zip(self.nodes, requests, strict=True)]


class World:
    """Parties with their ledgers on disk, and a coordinator that may ask whatever they agreed to."""

    def __init__(self, root: Path) -> None:
        self.center = Nodes(root)
        self.ledgers = {name: root / f"{name}.db" for name in KEYS}

    def answers(self, run: str, turn: int = 0) -> tuple[str, dict[str, list[bytes]]]:
        """What every party seals, as its daemon would after a start; and the question's digest."""
        terms = AGREED.terms(table(20).schema, GROUP)
        message = Question(
            study="s", run=run, method="m", step=addend.name, version=addend.version, group=GROUP.digest,
            plan=terms.digest, turn=turn, values=None,
        ).encode()  # fmt: skip
        sealed = {}
        for party in PARTIES:
            ledger = Ledger(self.ledgers[party.name])
            guard = Guard(party.name, table(20), policy=Policy(), ledger=ledger, rng=Rng.system())
            guard.begin(run, AGREED, GROUP)
            bond = Bond(sum_group=KEYS, sign=party.sign, nodes=())
            answer = Answer.decode(guard.answer(message, AGREED, self.center.keys, bond))
            envelopes = answer.value["envelopes"]
            assert isinstance(envelopes, list)
            sealed[party.name] = [one for one in envelopes if isinstance(one, bytes)]
            ledger.close()
        return question_digest(message), sealed

    def open(self, run: str, turn: int = 0) -> tuple[int, ...]:
        return tuple(int(x) for x in self.center.open_sum(*self.answers(run, turn)))

    def lose(self, *names: str) -> None:
        for name in names or KEYS:
            for ending in ("", "-wal", "-shm"):
                Path(f"{self.ledgers[name]}{ending}").unlink(missing_ok=True)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def tried(times: int, attempt: Callable[[int], tuple[int, ...]]) -> tuple[set[tuple[int, ...]], set[str]]:
    """All that could be opened, and why not more."""
    opened, refused = set(), set()
    for number in range(times):
        try:
            opened.add(attempt(number))
        except CenterError as error:
            refused.add(str(error))
    return opened, refused


def test_a_question_is_opened_with_one_noise_though_ledgers_are_lost(world: World) -> None:
    def ask_again(_: int) -> tuple[int, ...]:
        world.lose()
        return world.open("r")

    opened, refused = tried(TIMES, ask_again)
    assert len(opened) == 1, (
        f"the mean of {len(opened)} answers is {np.mean(list(opened), axis=0)}; the truth is (60, 3)"
    )
    assert all("answered before, by the same parties with other envelopes" in why for why in refused)


def test_one_party_s_loss_is_enough_to_be_refused(world: World) -> None:
    world.open("r")
    world.lose("south")
    with pytest.raises(CenterError, match="with other envelopes: the ledger of one of them was lost"):
        world.open("r")


def test_another_run_after_a_loss_is_noticed(world: World) -> None:
    def ask_anew(number: int) -> tuple[int, ...]:
        world.lose()
        return world.open(f"r{number}")

    opened, refused = tried(TIMES, ask_anew)
    assert len(opened) == 1
    assert all("another ledger than before" in why and "accept-ledger" in why for why in refused)


def test_a_ledger_restored_from_a_copy_is_noticed(world: World, tmp_path: Path) -> None:
    world.open("r")
    copies = {name: tmp_path / f"{name}.copy" for name in KEYS}
    for name, copy in copies.items():
        shutil.copy(world.ledgers[name], copy)

    def ask_next(number: int) -> tuple[int, ...]:
        world.lose()
        for name, copy in copies.items():
            shutil.copy(copy, world.ledgers[name])
        return world.open("r", turn=1 + number)

    opened, refused = tried(TIMES, ask_next)
    assert len(opened) == 1  # the first goes on from where the copy was made
    assert all("taken back to an earlier state, or that runs twice" in why for why in refused)


def test_nodes_remember_it_when_they_start_again(world: World) -> None:
    first = world.open("r")
    world.center.restart()
    assert world.open("r") == first  # stored answers are as good as before
    world.lose()
    world.center.restart()
    with pytest.raises(CenterError, match="other envelopes"):
        world.open("r")
    with pytest.raises(CenterError, match="another ledger"):
        world.open("r", turn=1)


def test_answers_may_come_in_any_order_and_again(world: World) -> None:
    answered = [world.answers("r", turn) for turn in range(6)]
    sums = {turn: world.center.open_sum(*answered[turn]).tolist() for turn in (3, 1, 5, 0, 2)}
    for turn, total in sums.items():
        assert world.center.open_sum(*answered[turn]).tolist() == total
        assert list(world.open("r", turn)) == total  # the party's stored answer
    seen = world.center.nodes[0]._memory._database.execute("SELECT first, last FROM taken WHERE party = 'north'")
    assert seen.fetchall() == [(1, 4), (6, 6)]  # no more than the gaps


def test_a_new_ledger_is_taken_when_every_node_s_operator_said_so_and_the_old_one_no_more(world: World) -> None:
    world.open("r")
    old = world.ledgers["north"].with_suffix(".old")
    shutil.copy(world.ledgers["north"], old)
    world.lose("north")
    for node in world.center.nodes[:2]:
        node._memory.ledgers.accept_new("north")
    with pytest.raises(CenterError, match="another ledger"):
        world.open("r", turn=1)
    world.center.nodes[2]._memory.ledgers.accept_new("north")
    world.open("r", turn=2)
    shutil.copy(old, world.ledgers["north"])
    with pytest.raises(CenterError, match="another ledger"):
        world.open("r", turn=3)
    with pytest.raises(CenterError, match="no ledger of party 'east'"):
        world.center.nodes[0]._memory.ledgers.accept_new("east")


def test_what_says_nothing_of_its_ledger_is_not_added_up(world: World) -> None:
    bound = (NormBound(size=1, norm=1),)
    label = Label(context="c", party="north", n_parties=1, sum_group=sum_group_digest(KEYS), bound=bound)
    envelopes = {"north": seal(np.ones(1, np.int64), label, world.center.keys, rng=Rng.system(), sign=PARTIES[0].sign)}
    with pytest.raises(CenterError, match="'north' does not say in which state its ledger is"):
        world.center.open_sum("c", envelopes)


# --- at the party ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> MemberFolder:
    """A party that has joined, has begun a run and released something."""
    path = tmp_path / "north"
    path.mkdir(mode=0o700)
    identity = Identity.make("north", "party", path)
    coordinator = Identity("coordinator", "coordinator", b"c" * 32).member
    pinned = Pinned(address=Address(url="tls://127.0.0.1:4222", authority=""), coordinator=coordinator, center=())
    MemberFolder.write(path, identity.member, pinned, None)
    (tmp_path / "north.csv").write_text("x\n1\n")
    write_party_file(path, DataSource(file=tmp_path / "north.csv"))
    Ledger(path / LEDGER).close()
    own = MemberFolder.load(path, "party")
    start(own).close()
    release(own, "q1")
    start(own).close()
    return own


def start(own: MemberFolder) -> PartyHandler:
    return PartyHandler(own, Journal("north", io.StringIO()))


def release(own: MemberFolder, run: str) -> None:
    ledger = Ledger(own.path / LEDGER)
    guard = Guard("north", table(20), policy=Policy(), ledger=ledger, rng=Rng.system())
    agreed = agreement(addend, epsilon=0.1)
    alone = SumGroup.of({"north": 20}, quorum=1)
    guard.begin(run, agreed, alone)
    message = Question(
        study="s", run=run, method="m", step=addend.name, version=addend.version, group=alone.digest,
        plan=agreed.terms(guard.table.schema, alone).digest, turn=0, values=None,
    ).encode()  # fmt: skip
    guard.answer(message, agreed, [bytes(NodeServer(i).public_key) for i in range(3)])
    ledger.close()


def test_a_party_without_its_ledger_does_not_start(folder: MemberFolder) -> None:
    (folder.path / LEDGER).unlink()
    with pytest.raises(SettingError, match=r"ledger.db is missing.*Restore the newest copy.*abandon-ledger"):
        start(folder)
    Ledger(folder.path / LEDGER).close()  # nor with an empty one
    with pytest.raises(SettingError, match=r"ledger.db is another one than it was.*Restore"):
        start(folder)


def test_a_party_with_an_older_ledger_does_not_start(folder: MemberFolder, tmp_path: Path) -> None:
    older = tmp_path / "older.db"
    shutil.copy(folder.path / LEDGER, older)
    release(folder, "q2")
    start(folder).close()
    shutil.copy(older, folder.path / LEDGER)
    with pytest.raises(SettingError, match=r"has \d+ lines in its log, and had \d+ before.*Restore"):
        start(folder)
    release(folder, "q3")  # as long as it was, and another
    with pytest.raises(SettingError, match=r"has another line \d+ in its log than it had"):
        start(folder)


def test_an_anchor_is_written_over_in_place(folder: MemberFolder) -> None:
    """So that every answer pays for a few bytes, and not for a new file; what is read is the last one."""
    from tacit.daemon.party.anchor import FILE, AnchoredLedger

    path = folder.path / FILE
    anchored = AnchoredLedger(folder.path, "north")
    anchored.anchor()
    before = path.stat()
    assert before.st_size == 512  # one sector: whole or not at all
    told = read_json(path)
    release(folder, "q2")
    anchored.anchor()
    anchored.close()
    assert (path.stat().st_ino, path.stat().st_size) == (before.st_ino, 512)
    assert read_json(path)["line"] > told["line"]
    assert read_json(path)["head"] == start_and_read_head(folder)


def start_and_read_head(own: MemberFolder) -> str:
    start(own).close()
    ledger = Ledger(own.path / LEDGER)
    head = Log(ledger, "north").head()
    ledger.close()
    return head


def test_an_anchor_of_an_earlier_release_holds_and_is_replaced(folder: MemberFolder, tmp_path: Path) -> None:
    from tacit.daemon.party.anchor import FILE

    path = folder.path / FILE
    path.write_text(json.dumps(read_json(path), indent=1) + "\n")
    older = tmp_path / "older.db"
    shutil.copy(folder.path / LEDGER, older)
    start(folder).close()
    assert path.stat().st_size == 512
    release(folder, "q2")
    start(folder).close()
    shutil.copy(older, folder.path / LEDGER)
    with pytest.raises(SettingError, match=r"has \d+ lines in its log, and had \d+ before.*Restore"):
        start(folder)


def test_an_owner_who_looks_makes_no_new_ledger_in_the_place_of_one_that_was_lost(folder: MemberFolder) -> None:
    """With the anchor gone as well, the party would start as if nothing had been spent."""
    from tacit.daemon.party.anchor import FILE
    from tacit.web.party.desk import PartyDesk

    for path in folder.path.glob(f"{LEDGER}*"):
        path.unlink()
    (folder.path / FILE).unlink()
    looks: list[Callable[[], object]] = [
        lambda: PartyDesk(folder, Journal("north", io.StringIO())),
        lambda: open_ledger(folder.path, "north"),
        lambda: start(folder),
    ]
    for look in looks:
        with pytest.raises(SettingError, match=r"ledger.db is missing.*Restore the newest copy"):
            look()
        assert not (folder.path / LEDGER).exists()


def test_a_party_goes_on_when_its_owner_leaves_the_old_ledger(folder: MemberFolder) -> None:
    from tacit.daemon.party.anchor import FILE, abandon_ledger

    assert (folder.path / FILE).stat().st_mode & 0o777 == 0o600
    (folder.path / LEDGER).unlink()
    assert abandon_ledger(folder.path, "north") is None
    start(folder).close()
    aside = abandon_ledger(folder.path, "north")
    assert aside is not None
    assert aside.exists()
    start(folder).close()


def test_owner_and_operator_say_so_on_the_command_line(
    folder: MemberFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tacit.cli.network.center import accept_ledger, ledgers
    from tacit.cli.network.party_ledger import abandon_ledger
    from tacit.secure.center.memory import FILE, Memory
    from tacit.secure.envelope import LedgerMark

    node = tmp_path / "node"
    node.mkdir()
    MemberFolder.write(node, Identity.make("node", "center", node).member, folder.pinned, 0)

    def sum_of(ledger: str, question: str) -> None:
        mark = LedgerMark(epoch=ledger, number=1, line=2, head="h")
        Memory(node / FILE).take_sum(question, "open", {"north": question.encode()}, {"north": mark})

    sum_of("old", "q1")
    with pytest.raises(CenterError, match="another ledger than before"):
        sum_of("new", "q2")
    (folder.path / LEDGER).unlink()
    abandon_ledger(folder.path, yes=True)
    assert "accept-ledger north" in capsys.readouterr().err
    start(folder).close()
    accept_ledger(["north"], node)
    sum_of("new", "q2")
    ledgers(node)
    assert "ledger new  sealed 1  line 2  head h" in capsys.readouterr().out


@pytest.mark.parametrize("removed", ["release", "line"])
def test_verifying_the_log_notices_a_release_that_was_taken_out(
    folder: MemberFolder, removed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_log(folder.path, verify=True, head=None)
    assert "whole and in order" in capsys.readouterr().out
    if removed == "release":
        with sqlite3.connect(folder.path / LEDGER) as database:
            database.execute("DELETE FROM release")
    else:
        _write_log_anew(folder.path / LEDGER, without="released")
        (folder.path / "anchor.json").unlink(missing_ok=True)
    what = {"release": "the log tells of a release", "line": "the ledger holds a release"}[removed]
    with pytest.raises(LogTampered, match=what):
        show_log(folder.path, verify=True, head=None)


def _write_log_anew(path: Path, without: str) -> None:
    """The log without some lines, with a chain of hashes that is whole again."""
    ledger = Ledger(path)
    lines = [line.decision for line in Log(ledger, "north").lines()]
    ledger.database.execute("DELETE FROM log")
    log = Log(ledger, "north")
    for decision in lines:
        if decision["decision"] != without:
            facts = {key: value for key, value in decision.items() if key not in ("decision", "time")}
            log.append(str(decision["decision"]), **facts)  # type: ignore[arg-type]
    ledger.close()
