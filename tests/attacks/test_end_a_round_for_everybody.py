"""A party wants to end every round for everybody, without being named: what it sends has an odd form.

It is named, and left out where the others are enough; else the run ends with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from nacl.signing import SigningKey

from tacit import Federation, Rng, wire
from tacit.daemon.party.handler import PartyHandler
from tacit.errors import AddendRefused, QuorumLost, WireError
from tacit.federation.engine import Card, InProcess, RunStart
from tacit.federation.guard import Guard
from tacit.federation.leaving import Leaving
from tacit.federation.member.folder import MemberFolder
from tacit.federation.message import Answer
from tacit.federation.nats.engine import NatsEngine, leave_strangers
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import HELLO
from tacit.federation.nats.letter import Letter
from tacit.methods import make
from tacit.privacy.event import Gaussian, PoissonSampled, Pure, Repeated
from tacit.secure.bound import NormBound
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.envelope import Label, LedgerMark, seal_words, sum_group_digest
from tacit.secure.process_key import SealKeys
from tacit.secure.ring import extend
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback, build
from ..daemon.test_federation import DESCENT, Watch, opt_in, run
from ..secure.center.signed_center import SignedCenter

HONEST = [300, -400, 500, 0]
OTHERS = ("north", "south")
MARK = LedgerMark(epoch="e", number=1, line=0, head="")


# --- what nodes read -------------------------------------------------------------------------------------------------


def odd_envelopes(center: SignedCenter, key: SigningKey, labels: Sequence[dict[str, Any]]) -> list[bytes]:
    """What `west` seals, with another label for each node: envelopes of three sealings, of which each node gets one."""
    sealed = []
    for node, changes in enumerate(labels):
        facts: dict[str, Any] = {
            "context": "q", "party": "west", "n_parties": 2, "sum_group": sum_group_digest(center.pinned),
            "bound": (NormBound(size=4, norm=1000),), "ledger": MARK, **changes,
        }  # fmt: skip
        rng = Rng.seeded(5)  # the same shares for all nodes
        words = extend(np.array(HONEST))
        envelopes = seal_words(
            words, Label(**facts), center.keys, rng=rng, sign=lambda text: bytes(key.sign(text).signature)
        )
        sealed.append(envelopes[node])
    return sealed


ODD_LABELS: dict[str, list[dict[str, Any]]] = {
    "it insists on everybody": [{"n_parties": 3}] * 3,
    "it insists on fewer": [{"n_parties": 1}] * 3,
    "it names another run": [{"run": "another"}] * 3,
    "it declares contrasts of its own": [{"contrasts": "own"}] * 3,
    "one node sees another ledger": [{"ledger": LedgerMark(epoch="new", number=9, line=0, head="")}, {}, {}],
    "one node sees a number again": [{}, {"ledger": LedgerMark(epoch="e", number=7, line=0, head="")}, {}],
}


@pytest.mark.parametrize("odd", ODD_LABELS)
def test_a_label_that_is_odd_names_its_party_before_any_node_gives_a_share(odd: str) -> None:
    center = SignedCenter(["north", "south", "west"])
    for node in center.nodes:  # what they know of its ledger
        node._memory.ledgers.take({"west": LedgerMark(epoch="e", number=7, line=0, head="")})
    honest = {name: center.sealed(name, HONEST, 1000, n_parties=2) for name in OTHERS}
    west = odd_envelopes(center, center.signers["west"], ODD_LABELS[odd])
    with pytest.raises(AddendRefused, match="party 'west'") as caught:
        center.open_sum("q", {**honest, "west": west})
    assert list(caught.value.parties) == ["west"]
    np.testing.assert_array_equal(center.open_sum("q", honest), 2 * np.array(HONEST))


def test_a_sum_that_was_opened_can_be_asked_for_again() -> None:
    center = SignedCenter(["north", "south", "west"])
    sealed = {name: center.sealed(name, HONEST, 1000) for name in center.signers}
    for _ in range(2):
        np.testing.assert_array_equal(center.open_sum("q", sealed), 3 * np.array(HONEST))


# --- what the coordinator reads --------------------------------------------------------------------------------------

Forge = Callable[[Answer], Answer]


def with_value(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Forge:
    return lambda answer: Answer(
        party=answer.party, question=answer.question, kind=answer.kind, value=change(dict(answer.value)),
        event=answer.event,
    )  # fmt: skip


def of_kind(kind: Any) -> Forge:
    return lambda answer: Answer(
        party=answer.party, question=answer.question, kind=kind, value=answer.value, event=answer.event
    )


class Forging(InProcess):
    """Carries what the last party says after forging it, and remembers who was left out."""

    def __init__(self, guards: Sequence[Guard], forge: Forge) -> None:
        super().__init__(guards)
        self._forge = forge
        self.left_out: dict[str, str] = {}

    def ask(self, start: RunStart, message: bytes, parties: Sequence[str], keys: SealKeys) -> dict[str, Answer]:
        answers = super().ask(start, message, parties, keys)
        return {name: self._forge(answer) if name == "west" else answer for name, answer in answers.items()}

    def exclude(self, parties: Mapping[str, str]) -> None:
        self.left_out |= parties


def forged(
    forge: Forge, *, dropouts: int = 0, seed: int = 3, names: Sequence[str] = (*OTHERS, "west")
) -> tuple[Federation, Forging]:
    chance = np.random.default_rng(0)
    X = chance.normal(size=(90, 2)) / 3
    y = (X[:, 0] + chance.normal(size=90) / 3 > 0).astype(np.int64)
    parties = Federation.split(X, y, groups=np.resize(np.array(names), 90), norm_bound=1.0, rng=Rng.seeded(seed))
    engine = Forging([parties.guard(name) for name in parties.names], forge)
    return Federation(engine, EmbeddedCenter(), dropouts=dropouts, seeded=True), engine  # parties seal to nodes


ODD_FORMS: dict[str, Forge] = {
    "another shape": with_value(lambda value: {**value, "shape": [7, 7]}),
    "a shape that is none": with_value(lambda value: {**value, "shape": ["x"]}),
    "a negative shape": with_value(lambda value: {**value, "shape": [-1]}),
    "an envelope too few": with_value(lambda value: {**value, "envelopes": value["envelopes"][:2]}),
    "envelopes that are none": with_value(lambda value: {**value, "envelopes": [1, 2, 3]}),
    "nothing": with_value(lambda _: {}),
    "something more": with_value(lambda value: {**value, "more": 1}),
    "not sealed at all": of_kind("noised"),
}


@pytest.mark.parametrize("odd", ODD_FORMS)
def test_a_round_goes_on_without_a_reply_of_an_odd_form(odd: str) -> None:
    parties, engine = forged(ODD_FORMS[odd], dropouts=1)
    model = make("averaging", {"epsilon": 50.0, "delta": 0.0}).fit(parties)
    assert np.isfinite(model.coef_).all()
    assert list(engine.left_out) == ["west"]


@pytest.mark.parametrize("odd", ODD_FORMS)
def test_a_run_that_needs_everybody_ends_with_the_name(odd: str) -> None:
    parties, engine = forged(ODD_FORMS[odd])
    with pytest.raises(AddendRefused, match="party 'west': it") as caught:
        make("averaging", {"epsilon": 50.0}).fit(parties)
    assert list(caught.value.parties) == list(engine.left_out) == ["west"]


def test_a_cost_of_its_own_invention_is_not_believed() -> None:
    """A report would state it; and to account for it would keep the coordinator busy for ever."""
    rounds = Repeated(event=PoissonSampled(probability=0.1, event=Gaussian(noise_multiplier=0.01)), count=2**62)
    parties, engine = forged(lambda answer: replace(answer, event=rounds), dropouts=1)
    model = make("averaging", {"epsilon": 50.0, "delta": 0.0}).fit(parties)
    assert list(engine.left_out) == ["west"]
    assert [party.name for party in model.facts_.parties if party.releases] == [*OTHERS]
    with pytest.raises(QuorumLost, match="no answer from west"):
        make("averaging", {"epsilon": 50.0}).fit(forged(lambda answer: replace(answer, event=rounds))[0])


@pytest.mark.parametrize("count", [np.inf, -np.inf, np.nan, "x", None, [], -1])
def test_an_event_that_is_none_is_no_answer(count: Any) -> None:
    event: Any = {"kind": "repeated", "event": {"kind": "free"}, "count": count}
    body = {"party": "west", "question": "q", "kind": "noised", "value": {}, "event": event}
    with pytest.raises(WireError, match="is not an event"):
        Answer.decode(wire.encode(body))


ARRAYS: dict[str, Any] = {
    "epsilon": {"kind": "pure", "epsilon": np.array([50.0])},
    "why": {"kind": "not-private", "why": np.array([1.0, 2.0])},
    "relation": {"kind": "under", "relations": [np.array([1.0, 2.0])], "event": {"kind": "free"}},
}


@pytest.mark.parametrize("what", ARRAYS)
def test_an_array_is_no_part_of_an_event(what: str) -> None:
    """One that equals what was planned would end the run at its report, when everybody has paid, and name nobody."""

    def sent(event: Any) -> Answer:
        body = {"party": "west", "question": "q", "kind": "noised", "value": {}, "event": event}
        return Answer.decode(wire.encode(body))

    assert sent({"kind": "pure", "epsilon": 50.0}).event == Pure(epsilon=50.0)
    with pytest.raises(WireError, match="is not an event"):
        sent(ARRAYS[what])


def test_of_two_both_are_named() -> None:
    parties, _ = forged(ODD_FORMS["another shape"], names=("north", "west"))
    with pytest.raises(WireError, match="the replies of 'north', 'west' to step 'averaging/model' differ in shape"):
        make("averaging", {"epsilon": 50.0}).fit(parties)


ODD_PARTS: dict[str, Forge] = {
    "a part more": with_value(lambda value: {**value, "own": value.get("moments", {})}),
    "a part less": with_value(lambda value: {}),
    "not sealed at all": of_kind("noised"),
}


@pytest.mark.parametrize("odd", ODD_PARTS)
def test_what_is_kept_has_the_parts_that_most_give(odd: str) -> None:
    parties, engine = forged(ODD_PARTS[odd])
    with pytest.raises(AddendRefused, match="party 'west': it"):
        make("privlogit", {"secure": "center"}).fit(parties)
    assert list(engine.left_out) == ["west"]


def replaced(name: str, value: Any) -> Forge:
    return with_value(lambda old: {**old, name: value})


ODD_REPLIES: dict[str, tuple[str, dict[str, Any], Forge]] = {
    "a model of another shape": ("objective-perturbation", {}, replaced("theta", np.zeros(9))),
    "a model that is not finite": ("objective-perturbation", {}, replaced("theta", np.full(3, np.nan))),
    "a model that sets the average": ("objective-perturbation", {}, replaced("theta", np.array([1e7, -1e7, 123.0]))),
    "a model that is text": ("objective-perturbation", {}, replaced("theta", "x")),
    "a source that is too long": (
        "hypothesis-transfer",
        {"strategy": "average"},
        replaced("model", np.full(3, 2**62)),
    ),
    "values instead of signs": (
        "ternary-descent",
        {"hidden_layer_sizes": (), "rounds": 3},
        with_value(lambda old: {"chosen": old["chosen"], "values": np.full(len(old["negative"]), 1e9)}),
    ),
    "more coordinates than are asked for": (
        "ternary-descent",
        {"hidden_layer_sizes": (), "rounds": 3},
        with_value(lambda _: {"chosen": np.packbits(np.ones(6, bool)), "negative": np.packbits(np.zeros(6, bool))}),
    ),
    "no choice at all": ("ternary-descent", {"hidden_layer_sizes": (), "rounds": 3}, replaced("chosen", b"")),
}


@pytest.mark.parametrize("odd", ODD_REPLIES)
def test_a_reply_that_no_honest_party_sends_ends_the_run_with_its_name(odd: str) -> None:
    name, settings, forge = ODD_REPLIES[odd]
    parties, engine = forged(forge)
    with pytest.raises(AddendRefused, match="party 'west'"):
        make(name, {"epsilon": 5.0, **settings}).fit(parties)
    assert list(engine.left_out) == ["west"]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_honest_model_is_taken_for_an_odd_one(delta: float) -> None:
    for seed in range(5):
        parties, engine = forged(lambda answer: answer, seed=seed)
        make("objective-perturbation", {"epsilon": 0.1 + seed, "delta": delta}).fit(parties)
        make("hypothesis-transfer", {"strategy": "average", "epsilon": 0.1 + seed, "delta": delta}).fit(parties)
        assert not engine.left_out


# --- before a run ----------------------------------------------------------------------------------------------------


def test_a_party_that_accepts_nobody_is_left_out_and_not_all_others() -> None:
    everybody = frozenset(("north", "south", "west"))
    cards: Any = dict.fromkeys(sorted(everybody))
    left = leave_strangers(cards, {"north": everybody, "south": everybody, "west": frozenset()})
    assert left == {"west": "it did not accept north, south yet; let it opt in again"}
    assert list(cards) == [*OTHERS]


@pytest.mark.parametrize("n_records", [-1, 2**41, 2**63 - 1])
def test_a_size_that_no_table_has_is_no_card(n_records: int) -> None:
    engine = NatsEngine.__new__(NatsEngine)
    engine._schema = Study.parse(STUDY).schema
    card = {"n_records": n_records, "schema": engine._schema.digest(), "accepts": [], "signature": b""}
    cards: dict[str, Card] = {}
    letter = Letter(
        kind=HELLO, sender="west", recipient="coordinator", nonce="0" * 32, time=0.0, body=wire.encode(card)
    )  # fmt: skip
    assert engine._told("west", letter, cards, {}) == "it sent a card that cannot be read; use the same release"
    assert not cards


# --- real daemons ----------------------------------------------------------------------------------------------------


class OddShape(PartyHandler):
    """Does all that a party does, but says that its numbers have a shape of their own."""

    def __init__(self, folder: MemberFolder, journal: Journal) -> None:
        honest = Leaving.form

        def odd(self: Leaving, *arguments: Any, **more: Any) -> Any:
            kind, value = honest(self, *arguments, **more)
            return kind, {**value, "shape": [3, 1, 4]} if kind == "sealed" else value

        Leaving.form = odd  # type: ignore[method-assign]
        super().__init__(folder, journal)


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    made = build(tmp_path_factory.mktemp("odd"), parties={"north": 120, "south": 80})
    try:
        made.add_party("west", 50, 2)
        made.start("west", "party", OddShape)
        yield made
    finally:
        made.close()


def test_a_run_begins_again_without_the_odd_party(federation: Loopback) -> None:
    study = Study.parse(STUDY.replace('"trial"', '"again"'))
    opt_in(federation, study)
    watch = Watch()
    finished = run(federation, study, watch)
    assert ("lost", "west") in watch.told
    assert [party.name for party in finished.model.facts_.parties] == ["north", "south"]
    assert "west (its reply to step 'averaging/model' has another shape" in finished.model.facts_.notices[-1]


def test_its_rounds_go_on_without_it_where_the_study_allows_that(federation: Loopback) -> None:
    study = Study.parse(DESCENT.replace('"trial"', '"on"').replace("quorum = 2", "quorum = 2\ndropouts = 1"))
    opt_in(federation, study)
    finished = run(federation, study)
    assert finished.run.attempt == 1
    assert any("without a party: west in 6" in notice for notice in finished.model.facts_.notices)


def test_a_run_that_needs_it_says_who_it_was(federation: Loopback) -> None:
    study = Study.parse(STUDY.replace('"trial"', '"all"').replace("quorum = 2", "quorum = 3"))
    opt_in(federation, study)
    with pytest.raises(QuorumLost, match="west: its reply to step 'averaging/model' has another shape"):
        run(federation, study)
