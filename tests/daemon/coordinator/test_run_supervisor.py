"""Runs in processes of their own: watched, stopped at any moment, and resumed."""

from __future__ import annotations

import json
from pathlib import Path

from tacit.daemon.coordinator.run_event import MOST_EVENTS, EventWatcher, RunEvent, RunEvents
from tacit.daemon.coordinator.run_record import Run
from tacit.daemon.coordinator.run_supervisor import RunSupervisor
from tacit.methods import load
from tacit.studies.study import Study

from ..conftest import STUDY, Loopback, wait_for

NAMED = STUDY.replace('name = "trial"', 'name = "supervised"').replace("quorum = 2", "quorum = 3")


def test_a_run_is_stopped_while_it_waits_and_resumed_to_its_end(federation: Loopback) -> None:
    study = Study.parse(NAMED)
    told: list[RunEvent] = []
    supervisor = RunSupervisor(federation.coordinator, lambda digest, event: told.append(event))
    federation.consent("north", study)
    federation.consent("south", study)
    try:
        supervisor.start(study.digest(), NAMED, wait=600.0)
        supervisor.start(study.digest(), NAMED, wait=600.0)  # a second press of the button changes nothing
        wait_for(lambda: any(event.party == "west" for event in told), "west's refusal")
        assert supervisor.stop(study.digest())
        assert not supervisor.is_running(study.digest())
        assert not supervisor.stop(study.digest())
        refused = next(event for event in told if event.party == "west")
        assert "has not opted into a study" in refused.words
        assert told[-1].kind not in ("finished", "ended")
        federation.consent("west", study)
        supervisor.start(study.digest(), NAMED, wait=600.0)
        wait_for(lambda: told[-1].kind in ("finished", "ended"), "the end of the run")
    finally:
        supervisor.close()
    assert told[-1].kind == "finished"
    runs = [event for event in told if event.kind in ("began", "resumed")]
    assert [event.kind for event in runs] == ["began", "resumed"]
    assert runs[0].words == runs[1].words
    assert {event.party for event in told if event.kind == "answered"} == {"north", "south", "west"}
    results = supervisor.results(study.digest())
    assert load(results / "model.json").name == "averaging"
    assert json.loads((results / "result.json").read_text())["run"] == runs[0].words


def test_a_run_that_cannot_begin_says_why(federation: Loopback) -> None:
    told: list[RunEvent] = []
    supervisor = RunSupervisor(federation.coordinator, lambda digest, event: told.append(event))
    text = STUDY.replace("quorum = 2", 'parties = ["nobody"]')
    try:
        supervisor.start("0" * 64, text, wait=1.0)
        wait_for(lambda: not supervisor.is_running("0" * 64), "the end of the process")
    finally:
        supervisor.close()
    assert told[-1].kind == "ended"
    assert "names nobody, who did not join this federation" in told[-1].words


def test_events_are_kept_and_the_oldest_forgotten(tmp_path: Path) -> None:
    events = RunEvents(tmp_path / "events.db")
    watcher = EventWatcher(lambda event: events.add("a", event))
    watcher.began(Run(id="r", study="a", name="n"), resumed=False)
    watcher.round(2, "newton/squares")
    watcher.party("north", "answer")
    watcher.party("north", "hello")
    watcher.party("south", "refused \x1b[2K")
    watcher.lost({"south": "gone"})
    kinds = [(event.kind, event.party, event.round) for event in events.of("a")]
    assert kinds == [
        ("began", "", 0), ("round", "", 2), ("answered", "north", 2), ("party", "south", 2), ("left", "south", 2),
    ]  # fmt: skip
    assert events.of("a")[3].words == "refused \\u001b[2K"
    events.close()
    events = RunEvents(None)
    for number in range(MOST_EVENTS + 3):
        events.add("a", RunEvent(kind="round", round=number))
    events.add("b", RunEvent(kind="round"))
    assert (len(events.of("a")), len(events.of("b")), events.of("a")[0].round) == (MOST_EVENTS, 1, 3)
    events.close()
