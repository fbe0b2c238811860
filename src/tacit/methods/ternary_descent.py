"""Ternary descent: parties train one network in turn; each upload is two bits a coordinate of a noisy gradient.

Parties   K parties with n_k records each; a coordinator that holds the public weights
Trust     nobody: each party adds all of its noise itself, before anything leaves. Parties may all collude. A party that
          sends nonsense can spoil the model; it learns nothing by it
Travels   in each round, coordinator -> one party: the weights and the plan. Party -> coordinator: which coordinates of
          its noisy gradient are the largest (one bit each), and their signs (one bit for each chosen one)
Revealed  every upload and all weights, to everybody; the numbers of records n_k, which the parties announce
Privacy   gaussian: PoissonSampled(q, Gaussian(sigma)) for each of the `rounds` times that a party is asked, calibrated
          to (epsilon, delta); one record, add-remove. gumbel: Zcdp(rho) for each. paper: NotPrivate
Assumes   a norm bound on rows, enforced where a table is encoded (fixed-point arithmetic needs a range). Gradients need
          none: each is clipped. A registered module: see docs/limits.md
Cost      K x rounds messages each way; 8 bytes a weight down, at most 2 bits a weight up; one pass over a party's
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
sigma on a Poisson sample (`methods.ternary`). That is the event, and privacy loss distributions compose it over the
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
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import NotConverged, PolicyRefusal, SettingError
from tacit.federation.federation import Federation, Opened
from tacit.federation.reply import Noised
from tacit.federation.step import step
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_choice, check_privacy, required_radius
from tacit.methods.ternary import largest, pack, report_noisy_top_n, rounded_gaussian, signed_gumbel_top, unpack
from tacit.models.ghost import LARGEST_BATCH, Activation, Clip
from tacit.models.network import LARGEST_WEIGHT, Network, Perceptron, TorchNetwork, check_hidden
from tacit.privacy.accounting import epsilon_of, rho_for
from tacit.privacy.event import Event, Gaussian, NotPrivate, PoissonSampled, Repeated, Zcdp
from tacit.privacy.noise import discrete_laplace
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mechanism = Literal["gaussian", "gumbel", "paper"]

_ROUNDED_BITS = 18  # of a sum's integers, before noise is added
_SMALLEST_Q = 2.0**-40


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public arguments of one run. What an answer costs follows from them alone, so they cannot lie about it.

    `noise` is sigma (gaussian), rho of one round (gumbel) or the document's epsilon (paper); 0 adds none. `n_chosen` is
    how many coordinates are uploaded. `module` names a registered module; otherwise `layers` makes a perceptron.
    """

    mechanism: str
    noise: float
    q: float
    clip: float
    n_chosen: int
    ternary: bool
    layers: list[int]
    activation: str
    module: str | None

    @property
    def coordinate(self) -> float:
        """B = C / sqrt(n): what an uploaded coordinate stands for, so that the ternary gradient is as long as C."""
        return self.clip / math.sqrt(self.n_chosen)

    @cached_property
    def bound(self) -> Clip:
        """How far one record's gradient may reach."""
        if self.mechanism == "gaussian":
            return Clip(bound=self.clip)
        return Clip(bound=self.coordinate, norm="largest")

    def event(self) -> Event:
        """What one answer costs."""
        if self.mechanism == "paper":
            return NotPrivate(why="Ternary descent as the dissertation prints it")
        if self.noise == 0:
            return NotPrivate(why="epsilon is infinite: no noise is added")
        if self.mechanism == "gumbel":
            return Zcdp(rho=self.noise)
        return PoissonSampled(probability=self.q, event=Gaussian(noise_multiplier=self.noise))

    def network(self, schema: Schema) -> Network:
        """The network for this schema's rows."""
        if self.module is not None:
            return TorchNetwork(name=self.module, n_features=schema.n_columns, n_classes=schema.n_classes)
        return Perceptron(
            n_features=schema.n_columns,
            n_classes=schema.n_classes,
            hidden=tuple(self.layers),
            activation="tanh" if self.activation == "tanh" else "relu",
            input_bound=required_radius(schema, "TernaryDescent", 0.0),
        )

    def check(self, table: Table, network: Network, weights: Floats) -> None:
        """Refuse a plan or weights that do not fit this party's table; nothing here depends on a record."""
        fits = (
            self.mechanism in ("gaussian", "gumbel", "paper")
            and self.activation in ("relu", "tanh")
            and _SMALLEST_Q <= self.q <= 1
            and (self.mechanism != "gumbel" or (self.q == 1 and self.ternary))
            and 0 <= self.noise < math.inf
            and 1 <= self.n_chosen <= network.n_parameters
            and isinstance(weights, np.ndarray)
            and weights.dtype == np.float64
            and weights.shape == (network.n_parameters,)
            and bool(np.all(np.abs(weights) <= LARGEST_WEIGHT))
        )
        if not fits:
            raise PolicyRefusal("the plan's weights, sampling, noise or choice do not fit this party's table")
        if self.q * table.n_records > LARGEST_BATCH / 2:
            raise PolicyRefusal(f"batches of q n = {self.q * table.n_records:.0f} records are too large; lower q")

    def compress(self, sums: Ints, n_drawn: int, *, rng: Rng) -> Noised:
        """A party's reply: the sum of its batch's clipped gradients with noise, and of that what is uploaded."""
        if self.mechanism == "gaussian":
            noisy, step = self._gaussian(sums, rng)
            chosen = largest(noisy, self.n_chosen)
            return self._reply(chosen, noisy * step)
        if self.mechanism == "gumbel":
            scale = 4 * (self.bound.bound / self.bound.unit) / math.sqrt(8 * self.noise / self.n_chosen)
            chosen, negative = signed_gumbel_top(sums, scale * (1 + 2.0**-40), self.n_chosen, rng=rng)
            return Noised(value=pack(chosen, negative=negative), event=self.event())
        return self._as_printed(sums, n_drawn, rng)

    def _gaussian(self, sums: Ints, rng: Rng) -> tuple[Ints, float]:
        """S' + round(N), and its step v."""
        step = math.ldexp(self.bound.unit, _ROUNDED_BITS)
        rounded = (sums + (1 << (_ROUNDED_BITS - 1))) >> _ROUNDED_BITS
        sensitivity = self.clip / step + math.sqrt(len(sums))
        return rounded + rounded_gaussian(self.noise * sensitivity * (1 + 2.0**-40), len(sums), rng=rng), step

    def _as_printed(self, sums: Ints, n_drawn: int, rng: Rng) -> Noised:
        """Algorithm 2 of the dissertation; (3.6) with the sign that its text means, or with values as it is printed.

        Noise of scale lambda / epsilon, lambda = 2 B / |D_q|, on averages is noise of scale 2 B / epsilon on sums.
        """
        step = math.ldexp(self.bound.unit, _ROUNDED_BITS)
        rounded = sums >> _ROUNDED_BITS
        scale = 2 * self.bound.bound / self.noise / step
        indices, _ = report_noisy_top_n(np.abs(rounded), scale, self.n_chosen, rng=rng)
        chosen = np.zeros(len(sums), dtype=bool)
        chosen[indices] = True
        fresh = rounded + discrete_laplace(scale, len(sums), rng=rng)
        return self._reply(chosen & (fresh != 0), fresh * (step * self.bound.bound / max(1, n_drawn)))

    def exactly(self, sums: Floats) -> Noised:
        """A party's reply without noise."""
        return self._reply(largest(sums, self.n_chosen), sums)

    def _reply(self, chosen: npt.NDArray[np.bool_], values: Floats) -> Noised:
        packed = pack(chosen, negative=values < 0) if self.ternary else pack(chosen, values=values)
        return Noised(value=packed, event=self.event())


@step("ternary-descent/gradient", version=1)
def ternary_gradient(table: Table, *, rng: Rng, weights: Floats, turn: int, **arguments: Any) -> Noised:
    """Draw a batch of this party's records and reply with its noisy, compressed gradient at the weights."""
    plan = Plan(**arguments)
    network = plan.network(table.schema)
    plan.check(table, network, weights)
    exact = plan.noise == 0
    sums: Any = np.zeros(network.n_parameters, dtype=np.float64 if exact else np.int64)
    n_drawn = 0
    for block in table.blocks():
        taken = poisson_sample(plan.q, len(block.y), rng=rng)
        X, y = block.X[taken], block.y[taken]
        n_drawn += len(y)
        sums += (network.float_sum if exact else network.clipped_sum)(weights, X, y, plan.bound)
    return plan.exactly(sums) if exact else plan.compress(sums, n_drawn, rng=rng)


def poisson_sample(q: float, n: int, *, rng: Rng) -> npt.NDArray[np.bool_]:
    """Which of n records enter the batch: each by itself, with probability at most q (less by under 2**-64)."""
    if q == 1:
        return np.ones(n, dtype=bool)
    return rng.words(n) < np.uint64(int(q * 2.0**64))


class TernaryDescent(Method):
    """A network trained by noisy gradients of which only the largest coordinates' signs travel.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing. With calibration="paper", the document's
            epsilon of one noise in one round.
        delta: the probability with which the promise may fail.
        layers: the widths of the perceptron's hidden layers; () is softmax regression.
        activation: "relu" or "tanh", between the perceptron's layers.
        module: the name of a torch module registered at every party (`register_module`), instead of the perceptron.
        rounds: how often each party is asked; None takes 100 (gaussian) or 30 (gumbel).
        q: the chance of a record to enter a batch; None takes 0.05 (gaussian); gumbel uses every record.
        clip: the largest L2 norm C of one record's gradient; gumbel cuts each entry to C / sqrt(n) instead.
        top: the share of coordinates that are uploaded, n = top d; None takes 0.1, or all of them if not compressed.
        learning_rate: None takes a public rule (`default_learning_rate`).
        mechanism: "gaussian", or "gumbel": the choice itself is private, without sampling.
        compression: "ternary" uploads signs, "none" uploads the noisy numbers.
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.
        seed: for the initial weights, which are public.

    Attributes:
        weights_: the trained network's flat weights.
    """

    name = "ternary-descent"
    relation = "add-remove"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        layers: tuple[int, ...] = (50, 20),
        activation: Activation = "relu",
        module: str | None = None,
        rounds: int | None = None,
        q: float | None = None,
        clip: float = 1.0,
        top: float | None = None,
        learning_rate: float | None = None,
        mechanism: Literal["gaussian", "gumbel"] = "gaussian",
        compression: Literal["ternary", "none"] = "ternary",
        calibration: Literal["sound", "paper"] = "sound",
        seed: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.layers = layers
        self.activation = activation
        self.module = module
        self.rounds = rounds
        self.q = q
        self.clip = clip
        self.top = top
        self.learning_rate = learning_rate
        self.mechanism = mechanism
        self.compression = compression
        self.calibration = calibration
        self.seed = seed

    def event(self) -> Event:
        """What one run costs each record of a party; needs no data."""
        return Repeated(event=self._plan(1).event(), count=self._rounds)

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise, that is, with the epsilon for which that noise is right."""
        if self.mechanism == "gumbel":
            return super().at_noise(factor)
        sigma = noise_multiplier(self.epsilon, self.delta, self._q, self._rounds) * factor
        epsilon = epsilon_of(_sampled(sigma, self._q, self._rounds), self.delta, relation=self.relation)
        return type(self)(**self.get_params() | {"epsilon": epsilon})

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A record whose gradient is clipped, there or not; all of the noisy gradient is opened, once."""
        schema = Schema.of_arrays(1, ["0", "1"], norm_bound=1.0)

        def party(*records: tuple[float, int]) -> Table:
            x, y = zip(*records, strict=True)
            return Table.from_arrays(np.array(x)[:, None], np.array(y), schema)

        settings = {"layers": (), "rounds": 1, "q": 1.0, "clip": 0.05, "compression": "none"}
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

        settings = {"layers": (), "rounds": 1, "q": 1.0, "compression": "none", "epsilon": epsilon}
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

    @property
    def _rounds(self) -> int:
        return (30 if self.mechanism == "gumbel" else 100) if self.rounds is None else self.rounds

    @property
    def _q(self) -> float:
        return (1.0 if self.mechanism == "gumbel" else 0.05) if self.q is None else float(self.q)

    def _plan(self, n_parameters: int) -> Plan:
        share = (0.1 if self.compression == "ternary" else 1.0) if self.top is None else self.top
        if math.isinf(self.epsilon):
            noise = 0.0
        elif self.calibration == "paper":
            noise = float(self.epsilon)
        elif self.mechanism == "gumbel":
            noise = rho_for(self.epsilon, self.delta) / self._rounds * (1 - 2.0**-39)
        else:
            noise = noise_multiplier(float(self.epsilon), self.delta, self._q, self._rounds)
        return Plan(
            mechanism="paper" if self.calibration == "paper" else self.mechanism,
            noise=noise,
            q=self._q,
            clip=float(self.clip),
            n_chosen=max(1, math.ceil(share * n_parameters)),
            ternary=self.compression == "ternary",
            layers=list(self.layers),
            activation=self.activation,
            module=self.module,
        )

    def _check_settings(self) -> None:
        check_privacy(self.epsilon, self.delta)
        if self.delta is None:
            raise SettingError("delta = None: Gaussian noise keeps no pure epsilon; a usual choice is 1e-5")
        check_hidden(self.layers)
        check_choice("activation", self.activation, ("relu", "tanh"))
        check_choice("mechanism", self.mechanism, ("gaussian", "gumbel"))
        check_choice("compression", self.compression, ("ternary", "none"))
        check_choice("calibration", self.calibration, ("sound", "paper"))
        if self.rounds is not None:
            _check_count("rounds", self.rounds, 1)
        _check_count("seed", self.seed, 0)
        _check_share("q", self.q, _SMALLEST_Q)
        _check_share("top", self.top, 0.0)
        if self.module is not None and not isinstance(self.module, str):
            raise SettingError(f"module = {self.module!r} must be the name of a registered module; see register_module")
        for name in ("clip", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 2.0**-60 <= value <= 2.0**60):
                raise SettingError(f"{name} = {value!r} must be a positive number of ordinary size")
        if self.mechanism == "gumbel" and (self._q != 1 or self.compression == "none"):
            raise SettingError(
                f"mechanism = 'gumbel' with q = {self._q} and compression = {self.compression!r}: it uses every record "
                f"and releases signs alone; leave q and compression out"
            )

    def _learn(self, parties: Federation) -> Learned:
        network = self._plan(1).network(parties.schema)
        plan = self._plan(network.n_parameters)
        weights, sizes = network.initial(self.seed), parties.sizes
        rate = default_learning_rate(plan) if self.learning_rate is None else self.learning_rate
        n_turns = self._rounds * len(sizes)
        for turn in range(n_turns):  # Algorithm 1: every party in turn, with the weights that the one before it left
            party = parties.names[turn % len(sizes)]
            reply = parties.ask(ternary_gradient, parties=[party], weights=weights, turn=turn, **asdict(plan))[party]
            uploaded = unpack(reply, network.n_parameters)
            if plan.ternary:
                gradient = plan.coordinate * uploaded
            else:
                gradient = uploaded if plan.mechanism == "paper" else uploaded / (plan.q * sizes[party])
            weights = weights - rate * (1 - turn / n_turns) * gradient  # (3.1), with a rate that falls to 0
            if not np.all(np.abs(weights) <= LARGEST_WEIGHT):
                raise NotConverged(f"the weights diverge in round {turn + 1}; choose a learning_rate below {rate:g}")
        self.weights_: Floats = weights
        self._network = network
        return Learned(coef=None, intercept=None)

    def decision_function(self, X: npt.ArrayLike | pd.DataFrame | Table) -> Floats:
        """Log odds of the last class (two classes), or one score for each class."""
        rows = self._encoded(X)
        scores = self._network.scores(self.weights_, rows)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"weights": self.weights_}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.layers = tuple(self.layers)  # a file holds a list
        self.weights_ = np.asarray(state["weights"], dtype=np.float64)
        self._network = self._plan(1).network(self.schema_)


def default_learning_rate(plan: Plan) -> float:
    """1 / C for ternary gradients, which are as long as C: the first step goes a distance of 1, later ones less.

    An average of clipped gradients is shorter than C, so without compression 10 / C. Both are rules of public settings
    and cost nothing. They were chosen by the area under the curve on test records of two public data sets at epsilon 3,
    among 0.03 to 4 (ternary) and 0.1 to 30 (none). Ternary on Adult, 0.3 to 4 are within 0.01 of each other; on card
    fraud 0.3 loses 0.02 to 0.05. Without compression card fraud is better still at 30 and Adult worse.
    """
    return (1.0 if plan.ternary else 10.0) / plan.clip


@lru_cache(maxsize=256)
def noise_multiplier(epsilon: float, delta: float, q: float, rounds: int) -> float:
    """The least sigma, to 1 in 1,000, for which so many sampled rounds cost no more than (epsilon, delta).

    Guarantees:
        The cost, as the accountant tells it, lies between 0.998 epsilon and epsilon.

    Each look at the accountant takes up to a second, so it searches along the nearly straight line of log epsilon over
    log sigma instead of halving an interval.
    """

    def excess(log_sigma: float) -> float:
        cost = epsilon_of(_sampled(math.exp(log_sigma), q, rounds), delta, relation="add-remove")
        return math.log(max(cost, 1e-12) / epsilon) + 0.001  # aim just below epsilon

    too_little, enough = -math.inf, math.inf
    last, x = math.log(4.0), math.log(2.0)
    at_last, at_x = excess(last), excess(x)
    for _ in range(60):
        if abs(at_x) <= 0.001:
            return math.exp(x)
        too_little, enough = (max(x, too_little), enough) if at_x > 0 else (too_little, min(x, enough))
        slope = (at_x - at_last) / (x - last) if x != last else 0.0
        guess = x - min(2.0, max(-2.0, at_x / slope)) if slope < 0 else x + math.copysign(0.5, at_x)
        if not too_little < guess < enough:
            guess = 0.5 * (too_little + enough)
        last, at_last, x = x, at_x, guess
        at_x = excess(x)
    raise SettingError(f"no noise is found for epsilon = {epsilon} at delta = {delta}; allow more of either")


def _sampled(sigma: float, q: float, rounds: int) -> Event:
    return Repeated(event=PoissonSampled(probability=q, event=Gaussian(noise_multiplier=sigma)), count=rounds)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingError(f"{name} = {value!r} must be a whole number, {least} or above")


def _check_share(name: str, value: Any, least: float) -> None:
    if value is not None and not (_is_number(value) and least <= value <= 1 and value > 0):
        raise SettingError(f"{name} = {value!r} must lie above 0, and be 1 at most")
