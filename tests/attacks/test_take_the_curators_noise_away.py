"""A coordinator plays the curator of `curator-averaging`, and wants the parties' models without their noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe")
pytest.importorskip("gmpy2")

from tacit import CuratorAveraging, Federation, wire
from tacit.daemon.coordinator.study_run import offer_of
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.owner_text import study_lines, why_not
from tacit.errors import NotAgreed, PolicyRefusal
from tacit.federation.group import SumGroup
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.folder import MemberFolder
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.policy import Policy
from tacit.methods.curator.lattice import ScaledLattice, for_smallest
from tacit.methods.curator.statistic import SessionLetters, join, letters
from tacit.models.solver import fit
from tacit.rand import Rng
from tacit.record import decode_record, encode_record
from tacit.secure.curator.curator import Curator
from tacit.secure.curator.letter import Carrier, ParticipantKeys, Pins
from tacit.secure.curator.member import FirstMember
from tacit.secure.curator.role import Role, open_shares
from tacit.secure.curator.terms import CURATOR, Contribution
from tacit.secure.paillier import key as paillier
from tacit.studies.study import Study
from tests.daemon.conftest import STUDY, Loopback, build

from .organisation import SIGNERS, Organisation, organisation, signer

METHOD = CuratorAveraging(epsilon=1.0, delta=0, l2=5.0, key_bits=512)
GROUP = SumGroup.of({"south": 300, "north": 60}, quorum=2, told="total")
NAMED = Policy(not_private=["curator-averaging"])
Hellos = dict[str, bytes]


@pytest.fixture(autouse=True, scope="module")
def short_keys_are_allowed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paillier, "LEAST_BITS", 512)
        yield


def party(name: str, policy: Policy, group: SumGroup = GROUP) -> Organisation:
    made = organisation(name, METHOD, group, policy=policy, n=300 if name == "south" else 60)
    made.begin()
    return made


# --- curators that lie -----------------------------------------------------------------------------------------------


class NobodyIsSmallest(Curator):
    """The factor that parties multiply their noise with is an encrypted 0."""

    def _marks(self, smallest: int) -> list[int]:
        return [0] * self.terms.n_parties


class TheLargestIsSmallest(Curator):
    """The factor is that of the other party."""

    def _marks(self, smallest: int) -> list[int]:
        return [1 - mark for mark in super()._marks(smallest)]


class TheFactorIsHuge(Curator):
    """The noise comes out above the mask, where the curator reads it."""

    def _marks(self, smallest: int) -> list[int]:
        return [mark << 100 for mark in super()._marks(smallest)]


def carry(
    asked: Mapping[str, Organisation],
    played: Mapping[str, Role],
    change: Callable[[str, Hellos], Hellos] = lambda _, hellos: hellos,
    *,
    run: str = "r",
    seen: list[bytes] | None = None,
) -> dict[str, bytes]:
    """Play the protocol with parties that are asked and roles that the coordinator plays; what they publish.

    `change` makes what the directory says to one of them; `seen` keeps what is delivered.
    """
    hellos: Hellos = {role: one.ask(join, run=run).value["hello"] for role, one in asked.items()}  # type: ignore[misc]
    hellos |= {role: one.hello() for role, one in played.items()}
    carrier, turns = Carrier(tuple(hellos)), Counter[str]()
    deliveries = {role: wire.encode({"directory": change(role, dict(hellos))}) for role in hellos}
    while deliveries:
        for role, message in deliveries.items():
            if role in asked:
                if seen is not None:
                    seen.append(message)
                answer: Any = asked[role].ask(letters, SessionLetters(message=message), run=run, turn=turns[role])
                carrier.collect(role, answer.value["message"])
                turns[role] += 1
            else:
                carrier.collect(role, played[role].receive(message))
        deliveries = carrier.due()
    carrier.check_finished()
    return carrier.published


def both(policy: Policy) -> dict[str, Organisation]:
    return {"party0": party("south", policy), "party1": party("north", policy)}


def curator_of(asked: Organisation, kind: type[Curator] = Curator, run: str = "r") -> dict[str, Role]:
    return {CURATOR: kind(asked.plan.terms(run), rng=Rng.system())}


def weighted_model(asked: Organisation) -> np.ndarray:
    n = asked.guard.table.n_records
    return np.asarray(fit(asked.guard.table.blocks, problem=asked.plan.problem(n)).theta.ravel() / 2)


@pytest.mark.parametrize("kind", [NobodyIsSmallest, TheLargestIsSmallest, TheFactorIsHuge])
def test_a_default_policy_takes_part_under_no_curator_since_one_may_lie(kind: type[Curator]) -> None:
    parties = both(Policy())
    with pytest.raises(PolicyRefusal, match=r"no epsilon bounds \(if the curator.*lies.*not_private=\['curator-avera"):
        carry(parties, curator_of(parties["party0"], kind))
    assert all(one.guard.ledger.n_releases(one.guard.name) == 0 for one in parties.values())


def test_what_an_owner_accepts_by_name_is_no_more_than_the_average() -> None:
    """The curator's lie takes the noise off the sum over all parties: this is what the consent page speaks of."""
    parties = both(NAMED)
    plan = parties["party0"].plan
    opened = open_shares(carry(parties, curator_of(parties["party0"], NobodyIsSmallest)), plan.terms("r"))
    found = plan.lattice.to_floats(opened)
    left = np.abs(found - sum(weighted_model(one) for one in parties.values()))
    assert isinstance(plan.lattice, ScaledLattice)
    assert np.max(left) < 0.2 * plan.lattice.noise_std(60)


# --- a coordinator that plays parties --------------------------------------------------------------------------------


def test_a_coordinator_that_plays_every_other_role_gets_no_letter() -> None:
    victim = party("north", NAMED)
    terms = victim.plan.terms("r")
    own = Contribution(size=300, factor=1, noise=[0] * 3, addend=[0] * 3)
    stranger = Pins(run="r", keys={}, sign=signer(SIGNERS["stranger"]))
    for pins in (None, stranger):
        played = {
            **curator_of(victim, NobodyIsSmallest),
            "party0": FirstMember("party0", terms, own, rng=Rng.system(), pins=pins),
        }
        with pytest.raises(NotAgreed, match="'party0' are not signed by that party for this run"):
            carry({"party1": victim}, played)
        victim = party("north", NAMED)


def test_letters_are_sealed_to_no_keys_that_the_coordinator_exchanged() -> None:
    """The coordinator puts a key of its own in another's place, with the true signature, to read what it carries."""
    own = bytes(Rng.system().bytes(32))

    def exchanged(reader: str, hellos: Hellos) -> Hellos:
        other = "party0" if reader == "party1" else "party1"
        keys = decode_record(ParticipantKeys, hellos[other])
        return {**hellos, other: encode_record(replace(keys, letters=own))}

    parties = both(NAMED)
    with pytest.raises(NotAgreed, match="are not signed by that party for this run and group"):
        carry(parties, curator_of(parties["party0"]), exchanged)


def test_parties_keys_do_not_pass_for_each_others() -> None:
    """One party that colludes lends its keys for another's place."""

    def lent(reader: str, hellos: Hellos) -> Hellos:
        return hellos if reader == "party0" else {**hellos, "party0": hellos["party1"]}

    parties = both(NAMED)
    with pytest.raises(NotAgreed, match="'party0' are not signed by that party"):
        carry(parties, curator_of(parties["party0"]), lent)


# --- lies about the run ----------------------------------------------------------------------------------------------


def test_parties_that_were_told_different_totals_do_not_write_to_each_other() -> None:
    """The larger the total, the less is regularised, and the more noise is due: one party's factor would not do."""
    parties = both(NAMED)
    parties["party1"] = party("north", NAMED, replace(GROUP, n_records=12_000))
    needed, had = parties["party1"].plan.lattice.factor(60), parties["party0"].plan.lattice.factor(60)
    assert needed > 5 * had  # what the lie would have taken away
    with pytest.raises(NotAgreed, match="are not signed by that party for this run and group"):
        carry(parties, curator_of(parties["party0"]))


@pytest.mark.parametrize("total", [61, 360, 5_000, 61_000])
def test_a_total_that_all_are_told_alike_takes_no_noise_away(total: int) -> None:
    """A party's noise is sized by the regularisation that it fits with, and by its own size."""
    group = replace(GROUP, n_records=total)
    own = organisation("north", METHOD, group, policy=NAMED)
    own.begin()
    needed = for_smallest(own.plan, 60).sensitivity * 128 / 127 / METHOD.epsilon
    assert own.plan.l2_mean == METHOD.l2 / total
    assert own.plan.lattice.noise_scale(60) >= needed


@pytest.mark.parametrize("total", [59, 10**6])
def test_a_total_that_cannot_be_is_refused(total: int) -> None:
    own = organisation("north", METHOD, replace(GROUP, n_records=total), policy=NAMED)
    with pytest.raises(PolicyRefusal, match="the run's sizes, columns or bounds do not fit"):
        own.begin()


def test_nothing_of_another_run_is_taken() -> None:
    """The coordinator brings a party's keys, or a letter, from a run that is over."""
    parties, seen = both(NAMED), []  # type: tuple[dict[str, Organisation], list[bytes]]
    carry(parties, curator_of(parties["party0"]), seen=seen)
    old = {role: bytes(one.ask(join).value["hello"]) for role, one in parties.items()}  # type: ignore[arg-type]
    for one in parties.values():
        one.begin("next")
        one.begin("last")
    with pytest.raises(NotAgreed, match="are not signed by that party for this run"):
        carry(
            parties,
            curator_of(parties["party0"], run="next"),
            lambda role, hellos: hellos | {other: key for other, key in old.items() if other != role},
            run="next",
        )
    victim = parties["party1"]
    hellos: Hellos = {role: one.ask(join, run="last").value["hello"] for role, one in parties.items()}  # type: ignore[misc]
    hellos |= {CURATOR: curator_of(victim, run="last")[CURATOR].hello()}
    victim.ask(letters, SessionLetters(message=wire.encode({"directory": hellos})), run="last")
    replayed = next(message for message in seen if "party0" in wire.decode(message).get("letters", {}))  # type: ignore[union-attr]
    with pytest.raises(NotAgreed, match="a letter from 'party0' does not open"):
        victim.ask(letters, SessionLetters(message=replayed), run="last", turn=1)


# --- against the daemons ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    made = build(tmp_path_factory.mktemp("curator"), parties={}, center=False)
    try:
        for node in ("node-a", "node-b", "node-c"):  # whose keys parties pin; nothing here is sealed to them
            made.invite(node, "center")
        for seed, name in enumerate(("north", "south")):
            made.add_party(name, 60, seed)
            made.start(name, "party")
        yield made
    finally:
        made.close()


TEXT = STUDY.replace('name = "averaging"', 'name = "curator-averaging"').replace('"trial"', '"curated"')


def allow(folder: Path) -> None:
    file = folder / "party.toml"
    file.write_text(file.read_text().replace("not_private = []", 'not_private = ["curator-averaging"]'))


def test_daemons_refuse_a_curator_by_default_and_exchanged_keys_always(
    loopback: Loopback, request: pytest.FixtureRequest
) -> None:
    study = Study.parse(TEXT)
    for name in ("north", "south"):
        loopback.consent(name, study, runs=3)
    with BlockingConnection(CoordinatorFolder(loopback.coordinator)) as connection:
        connection.announce(offer_of(study))
    parties = Federation.connect(study="curated", folder=loopback.coordinator)
    request.addfinalizer(parties.close)
    model = CuratorAveraging(epsilon=1.0)
    # 1. Nobody named the method.
    with pytest.raises(PolicyRefusal, match="its policy does not allow this"):
        model.fit(parties)
    assert [loopback.n_releases(name, study) for name in ("north", "south")] == [0, 0]
    # 2. Both did, and the coordinator puts a key of its own in the place of south's.
    for name in ("north", "south"):
        allow(loopback.folder(name))
    channel = parties.begin(model)
    answers = channel.ask_each(join, dict.fromkeys(parties.names))
    curator = Curator(channel.plan.terms(channel.run), rng=Rng.system())
    hellos = {f"party{i}": bytes(answers[name]["hello"]) for i, name in enumerate(parties.names)}  # type: ignore[arg-type]
    place = f"party{parties.names.index('south')}"
    keys = replace(decode_record(ParticipantKeys, hellos[place]), letters=Rng.system().bytes(32))
    directory = wire.encode({"directory": {**hellos, CURATOR: curator.hello(), place: encode_record(keys)}})
    with pytest.raises(NotAgreed, match=f"'{place}' are not signed by that party for this run and group"):
        channel.ask(letters, SessionLetters(message=directory), parties=["north"])
    # 3. Without that, the run ends well.
    assert np.all(np.isfinite(model.fit(parties).coef_))


def test_an_owner_reads_what_rests_on_the_coordinators_word(loopback: Loopback) -> None:
    study = Study.parse(TEXT)
    loopback.consent("north", study, "out")
    consents = Consents(loopback.folder("north") / CONSENT_FILE)
    offered = consents.find(study.digest())
    consents.close()
    assert offered is not None
    assert "if the curator, whose part the coordinator plays, lies" in why_not(offered, Policy())
    assert why_not(offered, NAMED) == ""
    shown = " ".join(
        " ".join(study_lines(offered, MemberFolder.load(loopback.folder("north"), "party"), NAMED)).split()
    )
    assert "Beware if the curator, whose part the coordinator plays, lies about which party is the smallest" in shown
    assert "Trusts the coordinator, who plays the curator, must not lie" in shown
