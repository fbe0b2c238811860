"""Ternary descent: parties train one network in turn; each upload is two bits a coordinate of a noisy gradient.

Parties   K parties with n_k records each; a coordinator that holds the public weights
Trust     nobody: each party adds all of its noise itself, before anything leaves. Parties may all collude. A party that
          sends nonsense can spoil the model; it learns nothing by it
Travels   in each round, coordinator -> one party: the weights. Party -> coordinator: which coordinates of its noisy
          gradient are the largest (one bit each), and their signs (one bit for each chosen one)
Revealed  every upload and all weights, to everybody; no number of records, since records may be added or removed
Privacy   gaussian: PoissonSampled(q, Gaussian(sigma)) for each time that a party is asked, at most rounds / K rounded
          up, calibrated to (epsilon, delta); one record, add-remove. gumbel: Zcdp(rho) for each. paper: NotPrivate
Assumes   a norm bound on rows, enforced where a table is encoded (fixed-point arithmetic needs a range). Gradients need
          none: each is clipped. A registered module: see docs/limits.md
Cost      `rounds` messages each way; 8 bytes a weight down, at most 2 bits a weight up; one pass over a party's
          records for each of its rounds, and one batch of about q n_k records through the network
Paper     Wang's dissertation, chapter 3 (DPSTGD, Report-Noisy-Top-N). Sound departs from it in the order: noise for
          the whole clipped gradient first, and then the choice of the largest and their signs, which cost nothing; the
          batch is amplified as a whole and the rounds are composed, where the dissertation amplifies each coordinate
          and counts one round; no value depends on the number of records drawn, by which it scales its noise

Proof (sound, gaussian). Fix the weights, which are public. (1) A batch B takes each record with probability at most q,
by itself. (2) S(B) is the sum over B of integer vectors r_i that depend on record i alone, of norm at most C / u
(`models.ghost`). Rounding S / 2**18 to integers gives S' with ||S'(B + i) - S'(B)|| <= C / v + sqrt(d) =: D, v = 2**18
u, since rounding moves a difference by at most 1 a coordinate. (3) The party draws round(N), N ~ N(0, (sigma D)**2 I),
exactly; S' + round(N) = round(S' + N) is a function of S' + N, the continuous Gaussian mechanism of noise multiplier
sigma on a Poisson sample (`choice`). That is the event, and privacy loss distributions compose it over the
rounds, each with weights that may depend on earlier uploads (Zhu, Dong and Wang 2022; Doroshenko et al. 2022). (4) The
choice of the largest and their signs are functions of S' + round(N). Every record belongs to one party. QED

Proof (sound, gumbel). All records are used and each entry of a gradient is cut to B, so replacing a record moves no
entry of S by more than 2 B / u, and adding or removing one by half of that; noise of scale 4 (B / u) / e makes each of
n draws one of bounded range e, and the round n e**2 / 8 =: rho zero-concentrated private (`signed_gumbel_top`). It
holds under both relations, so that a ledger may count it under either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import NotConverged, SettingError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel, Opened
from tacit.methods.cohort import Cohort
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_choice
from tacit.methods.ternary.choice import unpack
from tacit.methods.ternary.schedule import default_learning_rate, event_of, noise_multiplier, noise_of, sampled_rounds
from tacit.methods.ternary.statistic import Architecture, NetworkWeights, Plan, ternary_gradient
from tacit.methods.ternary.upload import Upload
from tacit.models.ghost import Activation
from tacit.models.network import LARGEST_WEIGHT, check_hidden
from tacit.privacy.accounting import epsilon_for, epsilon_of
from tacit.privacy.event import Event, Repeated
from tacit.privacy.guarantee import Guarantee

Floats = npt.NDArray[np.float64]

_SMALLEST_BATCH = 2.0**-40


class TernaryDescent(Method):
    """A network trained by noisy gradients of which only the largest coordinates' signs travel.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing. With calibration="paper", the document's
            epsilon of one noise in one round.
        delta: its probability of failing; None takes 1e-6. There is no pure form, so 0 is refused.
        hidden_layer_sizes: the widths of the perceptron's hidden layers; () is softmax regression.
        activation: "relu" or "tanh", between the perceptron's layers.
        module: the name of a torch module registered at every party (`register_module`), instead of the perceptron.
        rounds: how many rounds there are in all; each asks one party, in turn. None takes 100 (gaussian) or 30 (gumbel)
            for each party.
        batch: the probability with which a record enters a round; None takes 0.05 (gaussian); gumbel uses every record.
        clip: the largest L2 norm C of one record's gradient; gumbel cuts each entry to C / sqrt(n) instead.
        top: the share of coordinates that are uploaded, n = top d; None takes 0.1, or all of them if not compressed.
        learning_rate: None takes a public rule (`default_learning_rate`).
        mechanism: "gaussian", or "gumbel": the choice itself is private, without sampling.
        compression: "ternary" uploads signs, "none" uploads the noisy numbers.
        party_records: about how many records a party has, from public knowledge; needed with compression="none". Where
            records may be added or removed, nobody is told how many a party has.
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.
        random_state: a whole number, from which the initial weights follow; they are public.

    Attributes:
        weights_: the trained network's flat weights.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables({name: hospitals[name] for name in ("north", "south", "west")})
        >>> model = tacit.TernaryDescent(epsilon=1.0, hidden_layer_sizes=(4,), rounds=3).fit(parties)
        >>> model.predict(hospitals["east"]).shape
        (1500,)
    """

    name = "ternary-descent"
    relation = "add-remove"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        hidden_layer_sizes: tuple[int, ...] = (50, 20),
        activation: Activation = "relu",
        module: str | None = None,
        rounds: int | None = None,
        batch: float | None = None,
        clip: float = 1.0,
        top: float | None = None,
        learning_rate: float | None = None,
        mechanism: Literal["gaussian", "gumbel"] = "gaussian",
        compression: Literal["ternary", "none"] = "ternary",
        party_records: int | None = None,
        calibration: Literal["sound", "paper"] = "sound",
        random_state: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.module = module
        self.rounds = rounds
        self.batch = batch
        self.clip = clip
        self.top = top
        self.learning_rate = learning_rate
        self.mechanism = mechanism
        self.compression = compression
        self.party_records = party_records
        self.calibration = calibration
        self.random_state = random_state

    def event(self) -> Event:
        """What one run costs each record at most, however many parties take turns; needs no data.

        By default each is asked 100 (30) times. Of a given number of rounds this is the cost to one who is asked once.
        Whoever is asked more often gets more noise for the same epsilon. Under replace-one that has cost no more in
        every case tried; where it did, a party's ledger would still count what it gives, and refuse sooner.
        """
        promise, rounds = self.promise.settled(), self._rounds(1) if self.rounds is None else 1
        noise = noise_of(promise, mechanism=self.mechanism, batch=self._batch, rounds=rounds)
        event = event_of(promise, mechanism=self.mechanism, batch=self._batch, noise=noise)
        return Repeated(event=event, count=rounds)

    @property
    def guarantee(self) -> Guarantee:
        """What one run promises; needs no data. The noise for any number of parties costs epsilon, or a little less."""
        promised = super().guarantee
        return replace(promised, epsilon=float(self.epsilon)) if promised.is_private else promised

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise, that is, with the epsilon for which that noise is right.

        Right for a party that is asked in every round, or as often as the default says.
        """
        delta, rounds = self.promise.settled_delta, self._rounds(1)
        if self.mechanism == "gumbel":
            return type(self)(**self.get_params() | {"epsilon": epsilon_for(self.promise.rho / factor**2, delta)})
        sigma = noise_multiplier(float(self.epsilon), delta, self._batch, rounds) * factor
        epsilon = epsilon_of(sampled_rounds(sigma, self._batch, rounds), delta, relation=self.relation)
        return type(self)(**self.get_params() | {"epsilon": epsilon})

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A record whose gradient is clipped, there or not; all of the noisy gradient is opened, once."""
        schema = Schema.of_arrays(1, ["0", "1"], norm_bound=1.0)

        def party(*records: tuple[float, int]) -> Table:
            x, y = zip(*records, strict=True)
            return Table.from_arrays(np.array(x)[:, None], np.array(y), schema)

        settings = {"hidden_layer_sizes": (), "rounds": 1, "batch": 1.0, "clip": 0.05, "compression": "none"}
        settings |= {"party_records": 1}
        pairs = {
            "a record more": (party((1.0, 1), (1.0, 1)), party((1.0, 1))),
            "a record of another class more": (party((1.0, 1), (-1.0, 0)), party((1.0, 1))),
        }
        quiet = party((0.0, 1))
        return [
            Neighbours(label=label, first={"a": a, "b": quiet}, second={"a": b, "b": quiet}, settings=settings)
            for label, (a, b) in pairs.items()
        ]

    @classmethod
    def printed_neighbours(cls) -> list[Neighbours]:
        """One record or two, read off the size of the noise: its printed scale falls with the number drawn."""
        d, epsilon = 30, 0.005
        schema = Schema.of_arrays(d, ["0", "1"], norm_bound=1.0)
        one, two = (Table.from_arrays(np.zeros((m, d)), np.arange(m) % 2, schema) for m in (1, 2))

        def score(method: object, opened: list[Opened]) -> float:
            return float(np.abs(unpack(dict(opened[0]), 2 * (d + 1))).sum())

        settings = {"hidden_layer_sizes": (), "rounds": 1, "batch": 1.0, "compression": "none", "epsilon": epsilon}
        claimed = 3 * 2 * (d + 1) * epsilon  # 3 n epsilon for n values with their fresh noise
        return [
            Neighbours(
                label="a record more, by the scale",
                first={"a": one, "b": one},
                second={"a": two, "b": one},
                settings=settings,
                score=score,
                claimed=claimed,
            )
        ]

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        if cohort.n_records == 0 and self.compression == "none" and self.party_records is None:
            raise SettingError(
                "party_records = None: with compression = 'none' a step is divided by a party's number of records, "
                "which nobody is told; declare about how many records a party has, from public knowledge"
            )
        promise, rounds = self.promise.settled(cohort.n_records), self._rounds(cohort.n_parties)
        n_parameters = self._architecture.network(cohort.schema, cohort.radius).n_parameters
        each = math.ceil(rounds / cohort.n_parties)
        share = (0.1 if self.compression == "ternary" else 1.0) if self.top is None else self.top
        upload = Upload(
            mechanism="paper" if promise.is_paper else self.mechanism,
            noise=noise_of(promise, mechanism=self.mechanism, batch=self._batch, rounds=each),
            clip=float(self.clip),
            n_chosen=max(1, math.ceil(share * n_parameters)),
            ternary=self.compression == "ternary",
        )
        return Plan(
            cohort=cohort,
            promise=promise,
            architecture=self._architecture,
            upload=upload,
            batch=self._batch,
            rounds=rounds,
        )

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """A gradient in each round, from one party in turn."""
        return (Ask(step=ternary_gradient, times=plan.rounds, each=plan.each, event=plan.event()),)

    def _rounds(self, n_parties: int) -> int:
        return (30 if self.mechanism == "gumbel" else 100) * n_parties if self.rounds is None else self.rounds

    @property
    def _batch(self) -> float:
        return (1.0 if self.mechanism == "gumbel" else 0.05) if self.batch is None else float(self.batch)

    @property
    def _architecture(self) -> Architecture:
        return Architecture(
            hidden_layer_sizes=tuple(self.hidden_layer_sizes), activation=self.activation, module=self.module
        )

    def _check_settings(self) -> None:
        self.promise.check()
        if self.promise.is_pure:
            raise SettingError(f"delta = {self.delta!r}: its noise keeps no pure epsilon; None takes 1e-6")
        check_hidden(self.hidden_layer_sizes)
        check_choice("activation", self.activation, ("relu", "tanh"))
        check_choice("mechanism", self.mechanism, ("gaussian", "gumbel"))
        check_choice("compression", self.compression, ("ternary", "none"))
        for name in ("rounds", "party_records"):
            if getattr(self, name) is not None:
                _check_count(name, getattr(self, name), 1)
        _check_count("random_state", self.random_state, 0)
        _check_share("batch", self.batch, _SMALLEST_BATCH)
        _check_share("top", self.top, 0.0)
        if self.module is not None and not isinstance(self.module, str):
            raise SettingError(f"module = {self.module!r} must be the name of a registered module; see register_module")
        for name in ("clip", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 2.0**-60 <= value <= 2.0**60):
                raise SettingError(f"{name} = {value!r} must be a positive number of ordinary size")
        if self.mechanism == "gumbel" and (self._batch != 1 or self.compression == "none"):
            raise SettingError(
                f"mechanism = 'gumbel' with batch = {self._batch} and compression = {self.compression!r}: it uses "
                f"every record and releases signs alone; leave batch and compression out"
            )

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        network, upload, sizes = plan.network, plan.upload, channel.sizes
        self._network = network
        weights = network.initial(self.random_state)
        rate = default_learning_rate(upload) if self.learning_rate is None else self.learning_rate
        for turn in range(plan.rounds):  # Algorithm 1: parties in turn, with the weights that the one before it left
            party = channel.names[turn % channel.n_parties]
            reply = channel.ask(ternary_gradient, NetworkWeights(weights=weights), parties=[party])
            uploaded = channel.read(reply, lambda _, packed: upload.read(packed, network.n_parameters))[party]
            if upload.ternary:
                gradient = upload.coordinate * uploaded
            else:
                gradient = (
                    uploaded
                    if upload.mechanism == "paper"
                    else uploaded / (plan.batch * (self.party_records or sizes[party]))
                )
            weights = weights - rate * (1 - turn / plan.rounds) * gradient  # (3.1), with a rate that falls to 0
            if not np.all(np.abs(weights) <= LARGEST_WEIGHT):
                raise NotConverged(f"the weights diverge in round {turn + 1}; choose a learning_rate below {rate:g}")
            self._look_on(turn + 1, weights)
        self.weights_: Floats = weights
        return Learned(coef=None, intercept=None)

    def _look_on(self, n_rounds: int, weights: Floats) -> None:
        """Told of the public weights after each round; does nothing here."""

    def decision_function(self, X: npt.ArrayLike | pd.DataFrame | Table) -> Floats:
        """Log odds of the last class (two classes), or one score for each class."""
        rows = self._encoded(X)
        scores = self._network.scores(self.weights_, rows)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"weights": self.weights_}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.hidden_layer_sizes = tuple(self.hidden_layer_sizes)  # a file holds a list
        self.weights_ = np.asarray(state["weights"], dtype=np.float64)
        radius = self.schema_.radius
        assert radius is not None  # or it could not have been trained
        self._network = self._architecture.network(self.schema_, radius)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingError(f"{name} = {value!r} must be a whole number, {least} or above")


def _check_share(name: str, value: Any, least: float) -> None:
    if value is not None and not (_is_number(value) and least <= value <= 1 and value > 0):
        raise SettingError(f"{name} = {value!r} must lie above 0, and be 1 at most")
