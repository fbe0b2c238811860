"""Parties of one process that are served together decide, pay and write their logs as each does alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tacit import Averaging, Budget, Ensemble, Federation, Ledger, Policy, wire
from tacit.errors import AddendRefused, BudgetExceeded, CenterError, NotAgreed, WireError
from tacit.federation import engine as engine_module
from tacit.federation import federation as federation_module
from tacit.federation.group import SumGroup
from tacit.federation.log import _LAST_LINES, Log, _tails
from tacit.federation.message import Answer
from tacit.privacy.event import Pure
from tacit.privacy.ledger import Beginning, LedgerEntry, Reservation, RunEntry, Stage
from tacit.rand import Rng
from tacit.secure.bound import NormBound
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.center.simulated import SimulatedCenter
from tacit.secure.envelope import Label, seal
from tacit.secure.process_key import ProcessKey, sealed_bytes

N_PARTIES = 7


def crowd(**settings: Any) -> Federation:
    """A few parties that seal to the process, as those of a crowd do."""
    parties = some(**settings)
    parties.center = SimulatedCenter()
    return parties


def some(**settings: Any) -> Federation:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20 * N_PARTIES, 3)) / 3
    y = (X[:, 0] + rng.normal(size=len(X)) / 3 > 0).astype(np.int64)
    return Federation.split(X, y, groups=np.repeat(list("abcdefg"), 20), norm_bound=1.0, **settings)


def ensemble() -> Ensemble:
    return Ensemble(epsilon=1.0, delta=0, public=np.eye(3))


def rows(ledger: Ledger) -> dict[str, list[tuple[Any, ...]]]:
    """What the ledger holds of runs and answers, without what chance and the clock add."""
    select = {
        "run": "SELECT party, study, reserved, event, delta FROM run ORDER BY party",
        "release": "SELECT party, study, event, length(answer), step, turn FROM release ORDER BY party",
        "pinned": "SELECT party, field, digest FROM pinned ORDER BY party, field",
        "log": "SELECT party, line, json_extract(text, '$.decision', '$.bytes') FROM log ORDER BY party, line",
    }
    return {table: ledger.database.execute(one).fetchall() for table, one in select.items()}


@pytest.mark.parametrize("several", [1, 2, N_PARTIES])
def test_each_party_pays_and_writes_the_same_however_many_are_served_at_once(
    several: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, one_by_one = Ledger(), Ledger()
    first = ensemble().fit(crowd(ledger=together, rng=Rng.seeded(1)))
    monkeypatch.setattr(engine_module, "_SEVERAL", several)
    parties = crowd(ledger=one_by_one, rng=Rng.seeded(1))
    second = ensemble().fit(parties)
    assert rows(together) == rows(one_by_one)
    assert {table: len(found) for table, found in rows(together).items()} == {
        "run": N_PARTIES, "release": N_PARTIES, "pinned": N_PARTIES, "log": 2 * N_PARTIES,
    }  # fmt: skip
    assert [parties.guard(name).log.verify() for name in parties.names] == [2] * N_PARTIES
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-9)


@pytest.mark.parametrize("several", [2, 4096])
def test_if_one_party_of_a_crowd_has_no_budget_left_nobody_pays(several: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_SEVERAL", several)
    ledger = Ledger()
    parties = crowd(ledger=ledger, policy={"e": Policy(budget=Budget(epsilon_in_all=0.5))})
    with pytest.raises(BudgetExceeded, match="account 'e'"):
        ensemble().fit(parties)
    assert [ledger.epsilon(name, delta=1e-6) for name in parties.names] == [0.0] * N_PARTIES
    refused = {
        name: [line.decision["decision"] for line in parties.guard(name).log.lines()].count("refused")
        for name in parties.names
    }
    assert refused == {name: int(name == "e") for name in parties.names}


def test_answers_that_were_not_all_reserved_are_not_written_at_all() -> None:
    ledger, event = Ledger(), Pure(epsilon=1.0)
    entry = RunEntry(account="a", run="r", study="s", agreement="", group="g")
    reservation = Reservation(stages=(Stage(step="s/one", event=event, times=1),))
    ledger.begin_runs([Beginning(entry=entry, reservation=reservation, budget=Budget())], b"")
    answers = [
        LedgerEntry(account=name, study="s", run="r", step="s/one", turn=0, question="q", event=event, answer=b"")
        for name in "ab"
    ]
    with pytest.raises(NotAgreed, match="reserved nothing") as caught:
        ledger.spend(answers)
    assert caught.value.account == "b"
    with pytest.raises(NotAgreed, match="one of each account"):
        ledger.spend([answers[0], answers[0]])
    assert ledger.n_releases("a") == 0
    ledger.spend(answers[:1])
    with pytest.raises(NotAgreed, match="has reserved 1 answers to step 's/one', and gave them"):
        ledger.spend(answers[:1])


def test_a_simulation_learns_and_counts_what_parties_that_seal_to_nodes_do() -> None:
    simulated, noded = crowd(rng=Rng.seeded(4)), some(rng=Rng.seeded(4))
    first, second = (Averaging(epsilon=5.0).fit(parties) for parties in (simulated, noded))
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-12)
    assert dataclasses.asdict(first.facts_.traffic) == dataclasses.asdict(second.facts_.traffic)
    assert [one.bytes_sent for one in first.facts_.parties] == [one.bytes_sent for one in second.facts_.parties]


def test_only_a_crowd_seals_to_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(some().center, EmbeddedCenter)
    monkeypatch.setattr(federation_module, "_CROWD", N_PARTIES)
    assert isinstance(some().center, SimulatedCenter)


@pytest.mark.parametrize(("party", "size"), [("a", 1), ("a party with a long name, é", 300)])
def test_what_would_be_sealed_is_counted_to_the_byte(party: str, size: int) -> None:
    label = Label(context="q" * 64, party=party, n_parties=3, run="r", bound=(NormBound(size=size, norm=2**30),))
    addend = np.arange(size)
    envelopes = seal(addend, label, EmbeddedCenter().keys, rng=Rng.system())
    assert sealed_bytes(ProcessKey().seal(addend, label), size) == sum(map(len, envelopes))


# --- the center of a simulation --------------------------------------------------------------------------------------


def boxes(
    center: SimulatedCenter, addends: dict[str, list[int]], *, context: str = "q", n_parties: int = 2
) -> dict[str, list[bytes]]:
    def box(party: str, numbers: list[int]) -> bytes:
        bound = (NormBound(size=len(numbers), norm=2**62),)
        label = Label(context=context, party=party, n_parties=n_parties, bound=bound)
        return center.keys.seal(np.array(numbers), label)

    return {party: [box(party, numbers)] for party, numbers in addends.items()}


def test_it_opens_the_sum_and_no_other_of_the_same_question() -> None:
    center = SimulatedCenter()
    sealed = boxes(center, {"a": [1, -2], "b": [10, 20], "c": [-(2**40), 5]})
    assert center.open_sum("q", sealed).tolist() == [11 - 2**40, 23]
    assert center.open_sum("q", sealed).tolist() == [11 - 2**40, 23]
    with pytest.raises(CenterError, match="opened before over other parties"):
        center.open_sum("q", {party: sealed[party] for party in "ab"})
    with pytest.raises(CenterError, match="opened before over other parties, or of other answers"):
        center.open_sum("q", boxes(center, {"a": [1, -2], "b": [10, 20], "c": [0, 0]}))


def test_it_adds_up_more_addends_than_it_holds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.secure.center.simulated._SEVERAL", 3)
    center = SimulatedCenter()
    sealed = boxes(center, {f"p{i}": [i, -i * 2**50] for i in range(8)})
    assert center.open_sum("q", sealed).tolist() == [28, -28 * 2**50]


def test_it_refuses_what_nodes_refuse() -> None:
    center = SimulatedCenter()
    fine = boxes(center, {"a": [1], "b": [2], "c": [3]})
    with pytest.raises(CenterError, match="lets a sum over 3 parties be opened; 2 are in it"):
        center.open_sum("q", boxes(center, {"a": [1], "b": [2]}, n_parties=3))
    with pytest.raises(AddendRefused, match="belongs to another question or party"):
        center.open_sum("other", fine)
    with pytest.raises(AddendRefused, match="party 'a': the envelope of party 'a' belongs to another"):
        center.open_sum("q", {"a": fine["b"], "b": fine["b"]})
    with pytest.raises(AddendRefused, match="party 'c': it sent numbers on other terms than most"):
        center.open_sum("q", fine | boxes(center, {"c": [3, 4]}))
    with pytest.raises(AddendRefused, match="party 'b': a box does not open"):
        center.open_sum("q", fine | {"b": boxes(SimulatedCenter(), {"b": [2]})["b"]})
    with pytest.raises(AddendRefused, match="a box does not open"):
        center.open_sum("q", fine | {"b": [b""]})
    with pytest.raises(CenterError, match="does not fit the declared grid"):
        center.open_sum("q", boxes(center, {"a": [2**62], "b": [2**62]}))
    with pytest.raises(CenterError, match="nothing to add up"):
        center.open_sum("q", {})
    with pytest.raises(CenterError, match="only adds up"):
        center.keep("r", "n", "q", fine, (1,))


def test_what_a_party_adds_cannot_be_read_in_the_ledger() -> None:
    """Its own share of the noise protects it hardly at all."""
    ledger = Ledger()
    numbers = np.full(50, 0x1234_5678_9ABC, dtype=np.int64)
    label = Label(context="q", party="a", n_parties=1, bound=(NormBound(size=50, norm=2**62),))
    box = ProcessKey().seal(numbers, label)
    assert numbers[:1].tobytes()[:6] not in box
    parties = crowd(ledger=ledger)
    ensemble().fit(parties)
    ((stored,),) = ledger.database.execute("SELECT answer FROM release WHERE party = 'a'").fetchall()
    assert [len(Answer.decode(stored).value["envelopes"]), Answer.decode(stored).kind] == [1, "sealed"]  # type: ignore[arg-type]
    with pytest.raises(CenterError, match="sealed by another process"):
        ProcessKey().open(Answer.decode(stored).value["envelopes"][0])  # type: ignore[index, arg-type, call-overload]


# --- a group of more parties than a message has values ----------------------------------------------------------------


@pytest.mark.parametrize("n_parties", [3, 2**16, 2**16 + 1, 300_000])
@pytest.mark.parametrize("told", ["each", "none"])
def test_a_group_of_any_size_travels(n_parties: int, told: Any) -> None:
    group = SumGroup.of({f"p{i}": 1 + i % 5 for i in range(n_parties)}, quorum=n_parties, told=told)
    again = SumGroup.decode(group.encode())
    assert again == group
    assert again.digest == group.digest


def test_a_group_that_is_packed_otherwise_is_none() -> None:
    form = {"n_records": 0, "quorum": 1, "sizes": [], "signatures": {}}
    packed = wire.encode(["a", "b"])
    assert SumGroup.decode(wire.encode({**form, "names": [packed]})).names == ("a", "b")
    for names in ([packed, "c"], [wire.encode("a")], [wire.encode([1])], [b"x"], [packed, packed], [packed] * 65):
        with pytest.raises(WireError, match=r"sum group|starts no value|SumGroup"):
            SumGroup.decode(wire.encode({**form, "names": names}))
    with pytest.raises(WireError, match="sum group"):
        SumGroup.decode(wire.encode({**form, "names": [packed], "sizes": np.array([1, -1])}))


# --- what grows with a ledger's age ----------------------------------------------------------------------------------


def test_the_last_line_of_a_long_log_is_found_without_a_look_at_the_others() -> None:
    ledger = Ledger()
    for party in "ab":
        log = Log(ledger, party)
        for count in range(3):
            log.append("released", count=count)
    assert {name: line for name, (line, _) in _tails(ledger, ["a", "b", "c"]).items()} == {"a": 3, "b": 3}
    plan = [str(row[-1]) for row in ledger.look_up("EXPLAIN QUERY PLAN " + _LAST_LINES, ["a"])]
    assert any("(party=? AND line=?)" in step for step in plan)
