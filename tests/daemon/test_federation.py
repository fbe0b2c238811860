"""Three parties, three center nodes and a coordinator, in seven processes, over TLS."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.daemon.coordinator.joining import join
from tacit.daemon.coordinator.run_record import FILE, Run, Runs
from tacit.daemon.coordinator.study_run import Finished, StudyRun, offer_of
from tacit.errors import NotAgreed, QuorumLost, RunError, SettingError
from tacit.federation.federation import Federation
from tacit.federation.log import Log
from tacit.federation.member.address import Address
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.invitation import Invitation
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.engine import NatsEngine, Wanted
from tacit.federation.nats.server import reload
from tacit.methods import Averaging, Pooled
from tacit.privacy.ledger import Ledger
from tacit.secure.certificate import issue_server
from tacit.studies.study import Study

from .conftest import STUDY, Loopback, records, wait_for

PARTIES = ("north", "south", "west")
DESCENT = STUDY.replace('name = "averaging"', 'name = "noisy-descent"\nrounds = 6').replace(
    "epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-6"
)


class Watch:
    """Notes what a run tells, and does something at a round."""

    def __init__(self, at_round: Callable[[int], None] | None = None) -> None:
        self.told: list[tuple[str, str]] = []
        self._at_round = at_round

    def began(self, run: Run, *, resumed: bool) -> None:
        self.told.append(("resumed" if resumed else "began", run.id))

    def party(self, name: str, state: str) -> None:
        self.told.append((name, state))

    def round(self, number: int, step: str) -> None:
        self.told.append(("round", step))
        if self._at_round is not None:
            self._at_round(number)

    def lost(self, left: dict[str, str]) -> None:
        self.told += [("lost", name) for name in left]


def run(loopback: Loopback, study: Study, watch: Watch | None = None, **settings: object) -> Finished:
    coordinator = CoordinatorFolder(loopback.coordinator)
    call = StudyRun(coordinator, study, watch or Watch())
    try:
        return call(**settings)  # type: ignore[arg-type]
    finally:
        call.close()
        coordinator.close()


def opt_in(loopback: Loopback, study: Study, *names: str) -> None:
    for name in names or PARTIES:
        loopback.consent(name, study)


def ledger(loopback: Loopback, name: str) -> Ledger:
    return Ledger(loopback.folder(name) / "ledger.db")


def decisions(loopback: Loopback, name: str) -> Counter[object]:
    """What the party's log says, whose chain holds; without answers sent again, since a slow machine asks twice."""
    log = Log(ledger(loopback, name), name)
    counted = Counter(line.decision["decision"] for line in log.lines())
    assert log.verify() == counted.total()
    del counted["repeated"]
    return counted


def test_a_study_runs_between_processes_and_each_pays_once(loopback: Loopback, study: Study) -> None:
    opt_in(loopback, study)
    model = run(loopback, study).model
    assert model.n_rounds_ == 1
    assert {party.name: party.n_records for party in model.facts_.parties} == {"north": 120, "south": 80, "west": 50}
    assert np.all(np.isfinite(model.coef_))
    assert not model.facts_.notices
    for name in PARTIES:
        assert ledger(loopback, name).epsilon(name, delta=1e-6, study="trial") == pytest.approx(1.0)
        assert ledger(loopback, name).n_releases(name) == 1
        assert decisions(loopback, name) == {"began": 1, "released": 1}


def test_the_same_code_runs_after_connect(loopback: Loopback, study: Study, request: pytest.FixtureRequest) -> None:
    opt_in(loopback, study)
    with BlockingConnection(CoordinatorFolder(loopback.coordinator)) as connection:
        connection.announce(offer_of(study))
    url = CoordinatorFolder(loopback.coordinator).address.url
    parties = Federation.connect(url, study="trial", folder=loopback.coordinator)
    request.addfinalizer(parties.close)
    model = Averaging(epsilon=1.0).fit(parties)
    assert parties.sizes == {"north": 120, "south": 80, "west": 50}
    assert model.n_rounds_ == 1
    assert parties.engine.spent("trial", 1e-6) == {name: pytest.approx(1.0) for name in PARTIES}
    with pytest.raises(NotAgreed, match=r"plan is not the one that study 'trial' entails"):
        Averaging(epsilon=5.0).fit(parties)
    with pytest.raises(SettingError, match="no study 'other' was announced; known: trial"):
        Federation.connect(study="other", folder=loopback.coordinator)
    with pytest.raises(SettingError, match="is not the server of"):
        Federation.connect("tls://elsewhere:4222", study="trial", folder=loopback.coordinator)


def test_a_party_that_opts_out_gives_nothing_from_then_on_and_the_rest_go_on(loopback: Loopback) -> None:
    study = Study.parse(DESCENT)
    opt_in(loopback, study)
    watch = Watch(lambda number: loopback.consent("west", study, "out") if number == 3 else None)
    finished = run(loopback, study, watch)
    assert ("lost", "west") in watch.told
    assert finished.run.attempt == 2
    assert [party.name for party in finished.model.facts_.parties] == ["north", "south"]
    assert "west" in finished.model.facts_.notices[-1]
    assert "stays spent" in finished.model.facts_.notices[-1]
    assert ledger(loopback, "west").n_releases("west") == 2
    assert ledger(loopback, "north").n_releases("north") == 3 + 6  # three rounds of the first attempt, then all
    told = {party.name: party.epsilon for party in finished.model.facts_.parties}  # the report says what ledgers say
    kept = {name: ledger(loopback, name).epsilon(name, delta=1e-6, study="trial") for name in told}
    assert told == pytest.approx(kept, rel=1e-9)
    assert finished.model.guarantee_.epsilon == max(told.values()) > 1.1
    assert Log(ledger(loopback, "west"), "west").lines()[-1].decision["decision"] == "refused"


def test_below_the_quorum_a_run_stops_with_its_reason_and_can_be_resumed_for_nothing(loopback: Loopback) -> None:
    study = Study.parse(DESCENT.replace("quorum = 2", "quorum = 3"))
    opt_in(loopback, study)
    watch = Watch(lambda number: loopback.consent("west", study, "out") if number == 4 else None)
    with pytest.raises(QuorumLost, match=r"2 parties are left in 'trial' and 3 are needed \(west: .*opted out"):
        run(loopback, study, watch)
    stopped = Runs(loopback.coordinator / FILE).unfinished(study.digest())
    assert stopped is not None
    assert (stopped.state, stopped.attempt) == ("stopped", 1)
    loopback.consent("west", study, "in")
    finished = run(loopback, study)
    assert (finished.run.id, finished.run.attempt) == (stopped.id, 1)
    for name in PARTIES:
        assert ledger(loopback, name).n_releases(name) == 6
        assert ledger(loopback, name).epsilon(name, delta=1e-6, study="trial") == pytest.approx(1.0, rel=1e-3)


def test_an_interrupted_run_goes_on_where_it_was(loopback: Loopback) -> None:
    study = Study.parse(DESCENT)
    opt_in(loopback, study)

    def interrupt(number: int) -> None:
        if number == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        run(loopback, study, Watch(interrupt))
    loopback.stop("south")  # its answers of the first rounds are kept by the server
    loopback.start("south", "party")
    watch = Watch()
    finished = run(loopback, study, watch)
    assert watch.told[0] == ("resumed", finished.run.id)
    assert finished.model.n_rounds_ == 6
    for name in PARTIES:
        assert ledger(loopback, name).n_releases(name) == 6
    assert run(loopback, study).run.id != finished.run.id  # a finished run is not resumed


@pytest.mark.usefixtures("patient")
def test_a_changed_study_is_another_study(loopback: Loopback, study: Study) -> None:
    opt_in(loopback, study)
    other = Study.parse(STUDY.replace("epsilon = 1.0", "epsilon = 1.5"))
    with pytest.raises(QuorumLost, match=r"0 parties take part .*a changed study is another study"):
        run(loopback, other, wait=0)
    assert all(ledger(loopback, name).n_releases(name) == 0 for name in PARTIES)


def test_another_method_than_the_studys_is_refused_and_logged(loopback: Loopback, study: Study) -> None:
    opt_in(loopback, study)
    with BlockingConnection(CoordinatorFolder(loopback.coordinator)) as connection:
        engine = NatsEngine(connection, offer_of(study))
        engine.gather(Wanted(asked=PARTIES, quorum=3, seconds=60))
        parties = Federation(engine, engine.center, study=study.name)
        with pytest.raises(NotAgreed, match=r"of 'pooled' in study 'trial'; agreed to was 'averaging'"):
            Pooled().fit(parties)
    decisions = [line.decision["decision"] for line in Log(ledger(loopback, "north"), "north").lines()]
    assert decisions == ["began", "refused", "abandoned"]
    assert ledger(loopback, "north").n_releases("north") == 0


def test_a_party_that_comes_back_finds_the_question_that_waits_for_it(loopback: Loopback, study: Study) -> None:
    opt_in(loopback, study)
    back = threading.Timer(1.0, lambda: None)

    def leave(number: int) -> None:
        loopback.stop("west")
        nonlocal back
        back = threading.Timer(1.0, loopback.start, args=("west", "party"))
        back.start()

    finished = run(loopback, study, Watch(leave))
    back.join()
    assert finished.run.attempt == 1
    assert len(finished.model.facts_.parties) == 3


@pytest.mark.usefixtures("patient")
def test_a_table_that_no_longer_fits_takes_no_part_and_nothing_of_it_is_told(loopback: Loopback, study: Study) -> None:
    opt_in(loopback, study)
    records(50, 2).rename(columns={"age": "zebra"}).to_csv(loopback.root / "west.csv", index=False)
    watch = Watch()
    finished = run(loopback, study, watch, wait=0)
    assert [party.name for party in finished.model.facts_.parties] == ["north", "south"]
    assert any(name == "west" and "its table lacks columns of the study" in state for name, state in watch.told)
    assert not any("zebra" in state for _, state in watch.told)
    assert "table-does-not-fit" in loopback.journal("west")


def test_a_revoked_party_is_cut_off_at_once_and_stays_out(loopback: Loopback, study: Study) -> None:
    opt_in(loopback, study)
    coordinator = CoordinatorFolder(loopback.coordinator)
    coordinator.revoke("west")
    wait_for(lambda: "no-connection" in loopback.journal("west"), "the cut")
    assert "does not know this key" in loopback.journal("west")
    finished = run(loopback, study)
    assert [party.name for party in finished.model.facts_.parties] == ["north", "south"]


def test_an_invitation_that_was_used_admits_nobody_else(loopback: Loopback, tmp_path: Path) -> None:
    invitation = Invitation.read(loopback.root / "west.invite")
    with pytest.raises(SettingError, match="the invitation of 'west' was used before"):
        join(invitation, tmp_path / "impostor")
    assert '"invitation-refused"' in loopback.journal("coordinator")


def test_anothers_subject_is_refused_by_the_server_and_logged(loopback: Loopback) -> None:
    folder = MemberFolder.load(loopback.folder("west"), "party")

    async def intrude() -> list[bool]:
        connection = Connection(folder.pinned.address, folder.credential)
        await connection.open()
        others = ("tacit.ask.north", "tacit.call.north", "tacit.answer.>", ">", "tacit.>", "_INBOX.coordinator.>")
        refused = [await connection.is_refused(subject) for subject in others]
        own = await connection.is_refused("tacit.ask.west")
        for subject in ("tacit.answer.north.x", "tacit.ask.north", "tacit.study.x", "$JS.API.STREAM.DELETE.TACIT_ASK"):
            await connection.publish(subject, b"forged")
        await connection.flush()
        await connection.close()
        return [*refused, not own]

    assert all(asyncio.run(intrude()))
    for subject in ("tacit.answer.north.x", "tacit.ask.north", "tacit.study.x", "$JS.API.STREAM.DELETE.TACIT_ASK"):
        wait_for(partial(told_of, loopback, subject), subject)
    assert '"member": "west"' in loopback.journal("coordinator")


def told_of(loopback: Loopback, subject: str) -> bool:
    return f'"subject": "{subject}"' in loopback.journal("coordinator")


def open_connection(folder: MemberFolder, address: Address) -> None:
    async def attempt() -> None:
        connection = Connection(address, folder.credential)
        try:
            await connection.open(seconds=60.0)  # a certificate that is refused is told at once
        finally:
            await connection.close()

    asyncio.run(attempt())


def refusal(folder: MemberFolder) -> str:
    try:
        open_connection(folder, folder.pinned.address)
    except RunError as error:
        return str(error)
    return ""


def test_expired_and_foreign_certificates_are_refused(loopback: Loopback, tmp_path: Path) -> None:
    folder = MemberFolder.load(loopback.folder("west"), "party")
    open_connection(folder, folder.pinned.address)
    from tacit.federation.nats.server import ServerSettings

    foreign = CoordinatorFolder.make(tmp_path / "foreign", ServerSettings(port=14998), None).address.authority
    with pytest.raises(RunError, match=r"the certificate of the server .* is refused .*not your federation's server"):
        open_connection(folder, Address(url=folder.pinned.address.url, authority=foreign))
    issue_server(loopback.coordinator, ["localhost", "127.0.0.1"], days=-1)
    reload(loopback.coordinator)
    wait_for(lambda: re.search(r"expired.*tacit coordinator renew", refusal(folder)), "the expired certificate")
    CoordinatorFolder(loopback.coordinator).renew()
    wait_for(lambda: refusal(folder) == "", "the new certificate")


def test_daemons_stop_cleanly(loopback: Loopback) -> None:
    for name in ("west", "node-a", "coordinator"):
        assert loopback.stop(name) == 0
        assert loopback.journal(name).splitlines()[-1].endswith('"event": "stopped"}')


def test_a_daemon_stops_while_it_looks_for_a_server_that_is_gone(loopback: Loopback) -> None:
    loopback.stop("coordinator")
    wait_for(lambda: "no-connection" in loopback.journal("west"), "a try to connect")
    assert [loopback.stop(name) for name in ("west", "south", "north", "node-a")] == [0, 0, 0, 0]


def test_a_link_closes_although_its_client_swallows_the_cancellation(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = MemberFolder.load(loopback.folder("west"), "party")

    connecting = asyncio.Event()

    async def swallow(*_: object, **__: object) -> None:  # as the client's own `connect` may
        connecting.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise OSError("no server") from None

    async def close_while_connecting() -> None:
        connection = Connection(folder.pinned.address, folder.credential)
        await connection.open()
        monkeypatch.setattr("nats.aio.client.Client.connect", swallow)
        await connection.client.close()
        await asyncio.wait_for(connecting.wait(), timeout=120)
        await asyncio.wait_for(connection.close(), timeout=120)

    asyncio.run(close_while_connecting())


def test_a_lost_connection_is_noticed_although_its_client_does_not_tell(loopback: Loopback) -> None:
    """As when the client fails while it closes, with something left to send to a server that is gone."""
    folder = MemberFolder.load(loopback.folder("west"), "party")

    async def lose() -> bool:
        connection = Connection(folder.pinned.address, folder.credential)
        await connection.open()
        first = connection.client
        first._closed_cb = None
        await first.close()
        for _ in range(1200):
            await asyncio.sleep(0.1)
            if connection.client is not first:
                break
        found = connection.client is not first and connection.client.is_connected
        await connection.close()
        return found

    assert asyncio.run(lose())


@pytest.mark.usefixtures("patient")
def test_a_party_that_opted_out_is_not_waited_for(
    loopback: Loopback, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, state in (("north", "in"), ("south", "in"), ("west", "out")):
        loopback.consent(name, study, state)
    with BlockingConnection(CoordinatorFolder(loopback.coordinator)) as connection:
        engine = NatsEngine(connection, offer_of(study))
        told: dict[str, str] = {}
        greet = engine._call

        def call(kind: str, names: Sequence[str], *more: Any) -> Any:
            assert not {"north", "south", "west"} <= {*told}, "all have said yes or no, and are asked again"
            return greet(kind, names, *more)

        monkeypatch.setattr(engine, "_call", call)
        wanted = Wanted(asked=("north", "south", "west"), quorum=2, seconds=600.0)
        absent = engine.gather(wanted, told.__setitem__)
        assert list(engine.cards) == ["north", "south"]
        assert "its owner opted out of study 'trial'" in absent["west"]
        monkeypatch.undo()
        loopback.consent("south", study, "out")
        with pytest.raises(QuorumLost, match=r"1 parties take part in 'trial' and 2 are needed .*south.* opted out"):
            engine.gather(replace(wanted, asked=("north", "south")))
        loopback.consent("west", study)  # who changes their mind takes part again
        assert list(engine.gather(replace(wanted, asked=("north", "west")))) == []
