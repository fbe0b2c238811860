"""Averaging through a curator: the document's own three-stage protocol, with noise that nobody knows.

Parties   K >= 2 parties with n_j records each, and a curator, whose part the coordinator plays. The first party has a
          part of its own in finding the smallest one
Trust     honest but curious, as in the document. Sizes stay secret if the first party and the curator do not collude;
          the noise stays unknown even if the curator and `colluders` parties pool what they know. A curator who lies
          about which party is the smallest can take noise away: who cannot trust it uses `Averaging`
Travels   `secure.curator` has every message: shares of the sizes and encrypted comparisons between the first party and
          the curator (stage 1); encrypted selectors, factors and masked noise (stage 2); fresh shares of everything
          (stage 3). Letters between parties are sealed for their readers and carried by the coordinator
Revealed  the noisy average, to everybody; n = sum n_j and that no party has fewer than n_smallest records, in the plan.
          To the curator, a random order. The protocol hides the n_j, but a federation's cards tell them to the
          coordinator anyway, as the replace-one relation allows
Privacy   sound: Pure(epsilon), or a Gaussian and a small Pure that make (epsilon, delta) together; one record,
          replace-one. paper: NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more
          feature of fixed value, so that R^2 = radius^2 + 1
Cost      9 + 2 ceil(log2 K) rounds; K - 1 comparisons of about 60 encrypted bits, half a megabyte in all for ten
          parties; a party encrypts a ciphertext for about twelve coefficients; K^2 sealed letters. One local fit
Paper     Pathak, Rane and Raj 2010. The protocol's repairs are listed in `secure.curator`. Sound departs from the
          document in the noise: it is spherical or Gaussian, has the sensitivity of the average, and is the sum of
          shares from all parties, scaled by what the smallest party needs; `calibration="paper"` has iid Laplace noise
          of scale 2 / (n_min epsilon lambda), lambda = l2 / (2 n), made by the smallest party alone, who can subtract
          it. Weights are equal, as in the document; `Averaging` weighs by size, which needs less noise and no curator

Proof (sound). As in `methods.averaging`, replacing one record of party j moves the average, with weights 1 / K, by at
most S(n_j), which falls with n_j, so by no more than S(n_min). The noise has the scale that this asks for, although
nobody knows n_min, and the opened sum is private with rounding and float errors included: `methods.curator_lattice`.
All else that anybody sees is simulated from that sum, from what a participant brought itself and from random numbers
(`secure.curator`), so the curator and `colluders` parties learn no more from their joint view than from the honest
parties' sum with the honest parties' shares of the noise, which suffice. That view is simulated to within 2^-40 a
masked number and against bounded adversaries only: the guarantee towards insiders is computational.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from typing import Any, Literal, Self

import numpy as np

from tacit import wire
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import NotConverged, SettingError, WireError
from tacit.federation.federation import Federation
from tacit.federation.relay import Sessions, ask_each
from tacit.federation.reply import Relayed
from tacit.federation.step import step
from tacit.methods.averaging import SLACK, Plan, default_l2
from tacit.methods.curator_lattice import event_for, lattice_for, noise_epsilon
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_choice, check_colluders, check_l2, check_privacy, required_radius
from tacit.models.sensitivity import minimiser_sensitivity
from tacit.models.solver import fit
from tacit.privacy.event import Event, Free
from tacit.rand import Rng
from tacit.secure import paillier
from tacit.secure.curator.curator import Curator
from tacit.secure.curator.letter import Outgoing, Post
from tacit.secure.curator.member import FirstMember, Member
from tacit.secure.curator.role import open_shares
from tacit.secure.curator.terms import CURATOR, Terms
from tacit.secure.paillier import PrivateKey
from tacit.wire import Value

_CONSTANT = 1.0  # the value of the intercept's feature
_SPREAD = 1024  # no party may have fewer records than the average party has, over this

_MEMBERS: Sessions[Member] = Sessions()
_KEYS: Sessions[PrivateKey] = Sessions()  # of parties that were first in some run; keys serve many


@step("curator-averaging/join", version=1)
def join(table: Table, *, rng: Rng, plan: Mapping[str, Any], session: str, place: int, key_bits: int) -> Relayed:
    """Fit this party's classifier, take a place in the protocol, and pay for all that will be opened."""
    own = Plan(**plan)
    own.check(table)
    lattice = lattice_for(own)
    terms = lattice.terms(session, key_bits)
    if not 0 <= place < terms.n_parties:
        raise WireError(f"there is no place {place} among {terms.n_parties} parties")
    solution = fit(table.blocks, problem=own.problem(table.n_records))
    allowed = SLACK * minimiser_sensitivity(table.n_records, own.l2_mean, own.radius, own.n_classes)
    if not solution.distance_bound <= allowed:
        raise NotConverged(f"the local fit is not certified to within {allowed:.3g}; choose a larger l2")
    contribution = lattice.contribution(solution.theta, table.n_records, rng=rng)
    if place:
        member = Member(terms.parties[place], terms, contribution, rng=rng)
    else:
        key = _KEYS.get_or_open(table, f"{key_bits} bits", lambda: PrivateKey.generate(key_bits, rng=rng))
        member = FirstMember(terms.first, terms, contribution, rng=rng, key=key)
    _MEMBERS.open(table, session, member)
    event = event_for(own.epsilon, own.delta, paper=own.paper)
    return Relayed(value={"hello": member.hello()}, event=event, exact=math.isinf(own.epsilon))


@step("curator-averaging/letters", version=1)
def letters(table: Table, *, rng: Rng, session: str, message: bytes) -> Relayed:
    """Take a delivery of letters and answer with this party's own; the run was paid for when the party joined it."""
    answer = _MEMBERS.get(table, session).receive(message)
    if not Outgoing.decode(answer).awaits:
        _MEMBERS.close(table, session)
    return Relayed(value={"message": answer}, event=Free())


class CuratorAveraging(Method):
    """The average of locally trained classifiers by the three-stage protocol of Pathak, Rane and Raj.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: None for pure epsilon-differential privacy (spherical Laplace noise), or a probability (Gaussian noise).
        l2: regularisation of the sum over all records, 1/C of scikit-learn; None takes the public rule of `Averaging`,
            for parties of equal size.
        colluders: how many parties may pool what they know, with the curator; None means 1.
        fit_intercept: whether to learn an intercept, as a penalised feature.
        key_bits: the length of the Paillier keys, 2048 or more.
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.
    """

    name = "curator-averaging"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        l2: float | None = None,
        colluders: int | None = None,
        fit_intercept: bool = True,
        key_bits: int = 2048,
        calibration: Literal["sound", "paper"] = "sound",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.l2 = l2
        self.colluders = colluders
        self.fit_intercept = fit_intercept
        self.key_bits = key_bits
        self.calibration = calibration

    def event(self) -> Event:
        """What one run costs each record; needs no data."""
        return event_for(float(self.epsilon), self.delta, paper=self.calibration == "paper")

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise."""
        settings = self.get_params()
        return type(self)(**settings | {"epsilon": noise_epsilon(self.epsilon, self.delta, factor)})

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A lone record turned about, beside a party with nothing to say; strong regularisation reaches the bound."""
        schema = Schema.of_arrays(1, ["0", "1"], norm_bound=1.0)

        def party(x: float, label: int) -> Table:
            return Table.from_arrays(np.array([[x]]), np.array([label]), schema)

        quiet = party(0.0, 1)
        return [
            Neighbours(
                label="an extreme label",
                first={"a": party(1.0, 0), "b": quiet},
                second={"a": party(1.0, 1), "b": quiet},
                settings={"l2": 20.0, "fit_intercept": False, "colluders": 0},
            )
        ]

    def plan(self, parties: Federation) -> Plan:
        """The public plan of a run with these parties; of their sizes it tells the sum alone."""
        n_total, n_parties = sum(parties.sizes.values()), parties.n_parties
        if n_parties < 2:
            raise SettingError(
                "CuratorAveraging needs two parties or more: a sum over one hides nothing; use Averaging"
            )
        constant = _CONSTANT if self.fit_intercept else 0.0
        plan = Plan(
            epsilon=float(self.epsilon),
            delta=None if self.calibration == "paper" else self.delta,
            l2_mean=1.0,
            weights="equal",
            paper=self.calibration == "paper",
            n_total=n_total,
            n_smallest=max(1, n_total // (_SPREAD * n_parties)),
            n_parties=n_parties,
            colluders=1 if self.colluders is None else self.colluders,
            n_features=parties.schema.n_columns,
            n_classes=parties.schema.n_classes,
            radius=required_radius(parties.schema, "CuratorAveraging", constant),
            constant=constant,
        )
        check_colluders(plan.colluders, n_parties)
        l2 = default_l2(replace(plan, n_smallest=n_total // n_parties)) if self.l2 is None else self.l2
        return replace(plan, l2_mean=l2 / n_total)

    def _check_settings(self) -> None:
        check_privacy(self.epsilon, self.delta)
        check_l2(self.l2, zero=False)
        check_choice("calibration", self.calibration, ("sound", "paper"))
        bits = self.key_bits
        if isinstance(bits, bool) or not isinstance(bits, int) or bits % 16 or bits < paillier.LEAST_BITS:
            raise SettingError(f"key_bits = {bits!r} must be a multiple of 16, at least {paillier.LEAST_BITS}")

    def _learn(self, parties: Federation) -> Learned:
        plan = self.plan(parties)
        lattice = lattice_for(plan)
        session = Rng.system().bytes(8).hex()  # a new one even if the run is resumed: nobody remembers an old one
        terms = lattice.terms(session, self.key_bits)
        opened = run_protocol(parties, plan, terms)
        theta = lattice.to_floats(opened)
        if parties.witness is not None:
            parties.witness.append({"theta": theta})
        theta = np.atleast_2d(theta.reshape(plan.problem(1).loss.shape))
        d = plan.n_features
        intercept = theta[:, d] * plan.constant if plan.constant else np.zeros(len(theta))
        return Learned(coef=theta[:, :d], intercept=intercept)


@cache
def _curators_key(key_bits: int) -> PrivateKey:
    """The key of this process as a curator; it serves many runs."""
    return PrivateKey.generate(key_bits, rng=Rng.system())


def run_protocol(parties: Federation, plan: Plan, terms: Terms) -> list[int]:
    """Play the curator, and carry everybody's letters until all have published their shares; the sum of these."""
    names = dict(zip(terms.parties, parties.names, strict=True))
    # 1. Everybody joins and tells its keys.
    curator = Curator(terms, rng=Rng.system(), key=_curators_key(terms.key_bits))
    common: dict[str, Value] = {"plan": asdict(plan), "session": terms.session, "key_bits": terms.key_bits}
    answers = ask_each(parties, join, {name: {**common, "place": j} for j, name in enumerate(names.values())})
    directory: dict[str, Value] = {role: answers[name]["hello"] for role, name in names.items()}
    directory[CURATOR] = curator.hello()
    # 2. The directory, and then letters, as long as there are any.
    post = Post(terms.participants)
    deliveries = dict.fromkeys(terms.participants, wire.encode({"directory": directory}))
    while deliveries:
        at_parties = {role: message for role, message in deliveries.items() if role != CURATOR}
        questions: dict[str, dict[str, Value]] = {
            names[role]: {"session": terms.session, "message": message} for role, message in at_parties.items()
        }
        answers = ask_each(parties, letters, questions) if questions else {}
        for role in at_parties:
            answer = answers[names[role]]["message"]
            if not isinstance(answer, bytes):
                raise WireError(f"party {names[role]!r} did not answer with letters")
            post.collect(role, answer)
        if CURATOR in deliveries:
            post.collect(CURATOR, curator.receive(deliveries[CURATOR]))
        deliveries = post.due()
    # 3. Anybody can add the published shares up.
    post.check_finished()
    return open_shares(post.published, terms)
