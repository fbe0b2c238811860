"""Averaging through a curator: the document's own three-stage protocol, with noise that nobody knows.

Parties   K >= 2 parties with n_j records each, and a curator, whose part the coordinator plays. The first party has a
          part of its own in finding the smallest one
Trust     the coordinator, who plays the curator, must not lie, though it may be curious. One that lies can read the
          exact average of the honest parties' models. So a policy must name "curator-averaging" in `not_private`. Who
          cannot trust the coordinator uses `Averaging`. Sizes stay secret if the first party and the curator do not
          collude. The noise stays unknown even if an honest curator and `colluders` parties pool what they know
Travels   `secure.curator` has every message: shares of the sizes and encrypted comparisons between the first party and
          the curator (stage 1); encrypted selectors, factors and masked noise (stage 2); fresh shares of everything
          (stage 3). Letters between parties are sealed for their readers, to keys that each party signed for this run,
          and carried by the coordinator
Revealed  the noisy average, to everybody; n = sum n_j and that no party has fewer than a share of
          the average that the plan states. To the curator, a random order. The protocol hides the n_j from the
          parties, and so does the sum group; a federation's cards tell them to the coordinator, as the replace-one
          relation allows
Privacy   sound: Pure(epsilon), or a Gaussian and a small Pure that make (epsilon, delta) together; one record,
          replace-one. paper: NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more
          feature of fixed value, so that R^2 = radius^2 + 1
Cost      9 + 2 ceil(log2 K) rounds; K - 1 comparisons of about 60 encrypted bits, half a megabyte in all for ten
          parties; a party encrypts a ciphertext for about twelve coefficients; K^2 sealed letters. One local fit
Paper     Pathak, Rane and Raj 2010. The protocol's repairs are listed in `secure.curator`. Sound departs from the
          document in the noise. It is spherical or Gaussian, has the sensitivity of the average, and is the sum of
          shares from all parties, scaled by what the smallest party needs; `calibration="paper"` has iid Laplace noise
          of scale 2 / (n_min epsilon lambda), lambda = l2 / (2 n), made by the smallest party alone, who can subtract
          it. Weights are equal, as in the document; `Averaging` weighs by size, which needs less noise and no curator

Proof (sound). As in `methods.averaging`, replacing one record of party j moves the average, with weights 1 / K, by at
most S(n_j), which falls with n_j, so by no more than S(n_min). The noise has the scale that this asks for, although
nobody knows n_min, and the opened sum is private with rounding and float errors included: `methods.curator.lattice`.
All else that anybody sees is simulated from that sum, from what a participant brought itself and from random numbers
(`secure.curator`), so the curator and `colluders` parties learn no more from their joint view than from the honest
parties' sum with the honest parties' shares of the noise, which suffice. That view is simulated to within 2^-40 a
masked number and against bounded adversaries only: the guarantee towards insiders is computational.

Against a coordinator that lies:
1. It plays no party. Each party signs its keys of the run, for the study, the run, the group and the plan, and writes
   to no others than those whom its owner accepted (`secure.curator.letter`).
2. It tells all parties one number n of all records, since the group is in what they sign. If that number is false the
   noise is still right. A party fits with l2 / n and sizes its noise by the same l2 / n and by its own n_j: scale over
   sensitivity is what the event says, whatever n is. The lattice's bounds follow from n alone, and are the same for
   all. A party whose own size they do not fit refuses. The rule for delta gives 1e-6 at most. So the lie changes how
   much is regularised, and no promise.
3. It does lie about the factor, if it wants to: it holds the key of the factor and says which party is the smallest. An
   encrypted 0, or the factor of a larger party, takes noise away, and a very large factor lets it read the noise. To
   notice that, a party would have to compare a number that nobody may know with its own size.
4. What it then learns is bounded all the same. A party splits its model, less a mask, into shares for all participants,
   and sends them sealed by 1. So of all honest parties' models their sum is all that can be opened.
5. Because of 3 no epsilon is kept against this coordinator. The reply says so (`Relayed.counts_on`), and no default
   policy lets it go. A party that added all noise for its own size by itself would need no curator, and the average of
   K such models has K times the variance: that is no longer this method.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal, Self

import numpy as np

from tacit import wire
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError, WireError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.federation.group import SizesTold
from tacit.methods.averaging.method import default_l2
from tacit.methods.cohort import Cohort
from tacit.methods.curator.lattice import event_for, for_smallest, noise_epsilon
from tacit.methods.curator.statistic import COUNTS_ON, Plan, SessionLetters, join, letters
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_l2
from tacit.models.parameter import coefficients
from tacit.privacy.event import Event, Free
from tacit.rand import Rng
from tacit.secure.curator.curator import Curator
from tacit.secure.curator.letter import Carrier
from tacit.secure.curator.role import open_shares
from tacit.secure.curator.terms import CURATOR, CuratorTerms
from tacit.secure.paillier import key as paillier
from tacit.secure.paillier.key import PrivateKey
from tacit.wire import Value

_SPREAD = 1024  # no party may have fewer records than the average party has, over this


class CuratorAveraging(Method):
    """The average of locally trained classifiers by the three-stage protocol of Pathak, Rane and Raj.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing (Gaussian noise); None takes the rule min(1e-6, 1 / n^2), and 0 asks for pure
            epsilon (spherical Laplace noise).
        l2: regularisation of the sum over all records, 1/C of scikit-learn; None takes the public rule of `Averaging`,
            for parties of equal size.
        colluders: how many parties may pool what they know, with the curator; None means 1.
        fit_intercept: whether to learn an intercept, as a penalised feature.
        key_bits: the length of the Paillier keys, 2048 or more.
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> trusting = tacit.Policy(not_private=["curator-averaging"])  # who plays the curator must not lie
        >>> parties = tacit.Federation.from_tables(
        ...     {name: hospitals[name] for name in ("north", "south", "west")}, policy=trusting
        ... )
        >>> model = tacit.CuratorAveraging(epsilon=1.0, delta=0).fit(parties)
        >>> model.classes_.tolist()
        ['no', 'yes']
    """

    name = "curator-averaging"
    resumes = False  # a session lives in its parties' memory alone
    counts_on = COUNTS_ON

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

    @property
    def sizes_told(self) -> SizesTold:
        """The total alone: nobody learns anybody's size."""
        return "total"

    def event(self) -> Event:
        """What one run costs each record; needs no data."""
        return event_for(self.promise.settled())

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise."""
        return type(self)(**self.get_params() | {"epsilon": noise_epsilon(self.promise.settled(), factor)})

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

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort; of its sizes it tells the sum alone."""
        n, n_parties = cohort.n_records, cohort.n_parties
        if n_parties < 2:
            raise SettingError(
                "CuratorAveraging needs two parties or more: a sum over one hides nothing; use Averaging"
            )
        plan = Plan(
            cohort=replace(cohort, least_records=max(1, n // (_SPREAD * n_parties))),
            promise=self.promise.settled(n),
            l2_mean=1.0,
            weights="equal",
            key_bits=self.key_bits,
        )
        l2 = default_l2(for_smallest(plan, n // n_parties)) if self.l2 is None else self.l2
        plan = replace(plan, l2_mean=l2 / n)
        plan.check()
        return plan

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """Everybody joins; then letters, as many as the protocol has."""
        n_letters = plan.terms("course").n_deliveries
        return (Ask(step=join, event=event_for(plan.promise)), Ask(step=letters, times=n_letters, event=Free()))

    def _check_settings(self) -> None:
        self.promise.check()
        check_l2(self.l2, zero=False)
        bits = self.key_bits
        if isinstance(bits, bool) or not isinstance(bits, int) or bits % 16 or bits < paillier.LEAST_BITS:
            raise SettingError(f"key_bits = {bits!r} must be a multiple of 16, at least {paillier.LEAST_BITS}")

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        terms = plan.terms(channel.run)
        theta = plan.lattice.to_floats(run_protocol(channel, terms))
        if channel.witness is not None:
            channel.witness.append({"theta": theta})
        theta = theta.reshape(plan.problem(1).loss.shape)
        coef, intercept = coefficients(theta, plan.cohort.n_features, plan.cohort.constant)
        return Learned(coef=coef, intercept=intercept)


@cache
def _curators_key(key_bits: int) -> PrivateKey:
    """The key of this process as a curator; it serves many runs."""
    return PrivateKey.generate(key_bits, rng=Rng.system())


def run_protocol(channel: Channel, terms: CuratorTerms) -> list[int]:
    """Play the curator, and carry everybody's letters until all have published their shares; the sum of these."""
    names = dict(zip(terms.parties, channel.names, strict=True))
    # 1. Everybody joins and tells its keys.
    curator = Curator(terms, rng=Rng.system(), key=_curators_key(terms.key_bits))
    answers = channel.ask_each(join, dict.fromkeys(names.values()))
    directory: dict[str, Value] = {role: answers[name]["hello"] for role, name in names.items()}
    directory[CURATOR] = curator.hello()
    # 2. The directory, and then letters, as long as there are any.
    carrier = Carrier(terms.participants)
    deliveries = dict.fromkeys(terms.participants, wire.encode({"directory": directory}))
    while deliveries:
        at_parties = {role: message for role, message in deliveries.items() if role != CURATOR}
        carried = {names[role]: SessionLetters(message=m) for role, m in at_parties.items()}
        answers = channel.ask_each(letters, carried) if carried else {}
        for role in at_parties:
            answer = answers[names[role]]["message"]
            if not isinstance(answer, bytes):
                raise WireError(f"party {names[role]!r} did not answer with letters")
            carrier.collect(role, answer)
        if CURATOR in deliveries:
            carrier.collect(CURATOR, curator.receive(deliveries[CURATOR]))
        deliveries = carrier.due()
    # 3. Anybody can add the published shares up.
    carrier.check_finished()
    return open_shares(carrier.published, terms)
