"""What every plan shares: the cohort, that is who takes part with which rows, and the promise that is made to them.

Both are worked out from the study and the run's sum group alone, by the coordinator and by each party with this code.

    cohort = Cohort.of(schema, group, colluders=None, constant=1.0)
    promise = Promise(method="Averaging", epsilon=1.0).settled(cohort.n_records)
    grid = promise.grid(cohort.total(dimension=5, sensitivity=0.1, value_bound=3.0))

The unit. A promise is for one record, for all records of one person, or for all records of one party. A unit's m
complete records weigh 1/m each in every sum (`data.person`). Claim: replacing all records of a unit by any others, of
any number, moves a sum no further than replacing one record by another does where records are the unit. Proof.
1. The unit adds the mean of its records' terms: a point in the convex hull of all terms that a record can have.
2. A norm of a difference is convex in either end. So over pairs of points of the hull it is largest at two extreme
   points of it, and these are terms of single records. Where two norms are added up, that is one norm more.
3. Adding or removing a unit moves the sum by a point of the hull. Its norm is no larger than that of some term.
4. A unit without complete records adds 0, as a record does that is not complete (`data.table`).
5. A minimiser of the weighted sum of losses and a penalty moves by the change of the gradient over the penalty. The
   change is that of one sum, so steps 1 to 4 bound it.
6. Floats. A weight is 1/m to a relative 2^-53, and multiplying by it or by its root rounds once more. Each method
   counts that among the errors of a term. A computed sum errs by e times the sum of the weighted norms: of as many
   units at most. e grows with the number of rows, which is not public: `most_rows` bounds it, and a longer table is
   refused. Rounding to a grid happens once, after a party has added up; so a person with many rows rounds no more.
So sensitivities are those of records, and sizes are numbers of units. Numbers of records are told to nobody.

Offers. A party may offer less epsilon than is asked. Its records then weigh c < 1 on top. Claim: where all releases are
Gaussian, with mu_k each and mu in all, such a party's units have b mu_k and b mu, with b = mu(offered) / mu(asked) at
the run's delta: that is, (offered, delta). Proof.
1. A unit moves a party's sum by at most c S, where the noise is for S. Errors of floats are relative, so c scales them.
2. Rounding to a grid of step s adds r = s sqrt(d), whatever c is. The noise is for S + r. So the unit's mu is at most
   mu_k (c S + r) / (S + r).
3. r <= S / 1024 (`check_rounding`) and c = b - (1 - b) / 1024. So that is at most b mu_k.
4. Squares of mu add up over releases that depend on earlier outcomes: b mu in all, which is (offered, delta).
Other parties' units move what they did, so nobody's promise depends on what another offers. A sum has the weights
c_j n_j, and what counts records counts these (`n_weighted`). Where records follow the model at every party, the weights
change no estimate but for its spread. Where they do not, a party that offers less counts less in the mixture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tacit.data.schema import Schema
from tacit.data.stream import RowStream
from tacit.data.table import Table
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.group import SumGroup
from tacit.methods.setting import check_choice, check_colluders
from tacit.models.loss import Loss
from tacit.privacy.accounting import mu_for, rho_for
from tacit.privacy.event import Event, Gaussian, NotPrivate, Under
from tacit.privacy.guarantee import RELATIONS, Relation, check_delta, check_epsilon
from tacit.privacy.noise.grid import NoiseGrid, VectorSum, calibrated_event, calibrated_grid, exact_grid
from tacit.secure.bound import Bound, NormBound
from tacit.unit import Unit

LARGEST_DELTA = 1e-6
"""The public rule for delta: this, or 1 / n^2 if that is less."""

MOST_RECORDS = 2**24
"""Of one party, where no number is told."""

_ROUNDING = 1 + 1e-12
_OF_ROUNDING = 1 / 1024  # how much of a sensitivity rounding to a grid may add, where a party offers less
_LEAST_SHARE = 0.02  # of mu, that a party can offer


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """Who takes part in a run, and what is public about their rows.

    Attributes:
        schema: the study's.
        group: the parties, their sizes, and how few of them a round needs.
        colluders: how many parties may pool what they know.
        constant: the value of the intercept's feature; 0 for no intercept.
        least_records: no party has fewer units; told apart from the sizes where those are hidden.
        method: who asks, for explanations.
        unit: whose records weigh 1 together.
        shares: what such a unit weighs at the parties that offer less, by name: c; 1 at all others.
        budgets: the share of mu that these parties' units have: b.
    """

    schema: Schema
    group: SumGroup
    colluders: int
    constant: float = 0.0
    least_records: int = 1
    method: str = "this method"
    unit: Unit = "record"
    shares: Mapping[str, float] = field(default_factory=dict)
    budgets: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        schema: Schema,
        group: SumGroup,
        *,
        colluders: int | None,
        constant: float = 0.0,
        method: str = "this method",
        unit: Unit = "record",
    ) -> Cohort:
        """The cohort of a run; by default one party may collude, since every party knows its own share of the noise."""
        assumed = min(1, group.n_parties - 1) if colluders is None else colluders
        check_colluders(assumed, group.quorum)
        return cls(
            schema=schema,
            group=group,
            colluders=assumed,
            constant=constant,
            least_records=min(group.sizes, default=1),
            method=method,
            unit=unit,
        )

    def with_constant(self, constant: float) -> Cohort:
        """The same with another value of the intercept's feature."""
        return replace(self, constant=constant)

    # --- parties -----------------------------------------------------------------------------------------------------

    @property
    def n_parties(self) -> int:
        """How many parties there are."""
        return self.group.n_parties

    @property
    def quorum(self) -> int:
        """How many of them are in a sum at least."""
        return self.group.quorum

    @property
    def n_records(self) -> int:
        """How many records they have together, or persons where these are the unit; 0 where that is not told."""
        return self.group.n_records

    @property
    def n_units(self) -> int:
        """How many units take part; 0 where that is not told. How many parties there are is never hidden."""
        return self.n_parties if self.unit == "party" else self.group.n_records

    @cached_property
    def n_largest(self) -> int:
        """No party has more units."""
        if self.unit == "party":
            return 1
        return max(self.group.sizes, default=self.n_records or MOST_RECORDS)

    @property
    def most_rows(self) -> int:
        """No party has more rows."""
        return self.n_largest if self.unit == "record" else MOST_RECORDS

    def stream(self, table: Table, share: float = 1.0) -> RowStream:
        """A party's rows, with what each weighs; `share` is what a unit of this party weighs."""
        return table.stream(self.unit, share)

    # --- offers ------------------------------------------------------------------------------------------------------

    def with_offers(self, promise: Promise, *, taken: bool) -> Cohort:
        """The same with what the group's offers make of a promise with a settled delta, if the method takes any."""
        if not self.group.offers:
            return self
        if not taken:
            raise SettingError(
                f"{next(iter(self.group.offers))!r} offers less epsilon than is asked, and {self.method} with these "
                f"settings cannot take that; let all offer what is asked, or choose PrivateNewton"
            )
        budgets = {}
        for name, offer in self.group.offers.items():
            if not offer < promise.epsilon:
                raise SettingError(
                    f"party {name!r} offers epsilon {offer:g}, and {promise.epsilon:g} is asked; it may offer less, or "
                    f"leave its offer out"
                )
            budgets[name] = mu_for(offer, promise.settled_delta) / promise.mu * (1 - 1e-9)
            if budgets[name] < _LEAST_SHARE:
                raise SettingError(
                    f"party {name!r} offers epsilon {offer:g} of {promise.epsilon:g}: its records would hardly count; "
                    f"let it offer more, or take no part"
                )
        shares = {name: b - (1 - b) * _OF_ROUNDING for name, b in budgets.items()}
        return replace(self, shares=shares, budgets=budgets)

    @property
    def n_weighted(self) -> float:
        """How much all units weigh together; 0 where their number is not told."""
        sizes = (1,) * self.n_parties if self.unit == "party" else self.group.sizes
        if not self.shares or not sizes:
            return float(self.n_units)
        return float(sum(self.shares.get(name, 1.0) * n for name, n in zip(self.group.names, sizes, strict=True)))

    def share(self, party: str | None) -> float:
        """What a unit of this party weighs; where somebody offers less, a party must be named."""
        if party is None and self.shares:
            raise SettingError("a party of this run offers less than is asked; a step must know whose table it reads")
        return self.shares.get(party or "", 1.0)

    def cost(self, event: Event, party: str | None) -> Event:
        """What a Gaussian release with this event costs a unit of this party."""
        b = self.budgets.get(party or "", 1.0)
        match event:
            case Gaussian(noise_multiplier=noise) if b < 1:
                return Gaussian(noise_multiplier=noise / b)
            case Under(relations=relations, event=inner) if b < 1:
                return Under(relations=relations, event=self.cost(inner, party))
        return event

    def costs(self, event: Event) -> dict[str, Event]:
        """The same for all parties that offer less."""
        return {name: self.cost(event, name) for name in self.budgets}

    def check_rounding(self, grid: NoiseGrid) -> NoiseGrid:
        """The grid, unless rounding to it would cost a party that offers less too much: step 3 of the proof."""
        total = grid.total
        if self.shares and grid.step * math.sqrt(total.dimension) > _OF_ROUNDING * total.sensitivity:
            raise SettingError("no grid is fine enough for a party that offers less; let all offer what is asked")
        return grid

    # --- rows --------------------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """How many encoded columns a row has, without the constant."""
        return self.schema.n_columns

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return self.schema.n_classes

    @property
    def radius(self) -> float:
        """The bound on the norm of a row without its constant; a `SettingError` if none is declared."""
        if self.schema.radius is None:
            raise SettingError(
                f"{self.method} needs a bound on the norm of a row: pass norm_bound=... to Federation.split, "
                f"or give every numeric feature its low and high"
            )
        return self.schema.radius

    @property
    def row_norm(self) -> float:
        """R: the bound on the norm of a row with its constant."""
        return math.hypot(self.radius, self.constant)

    @property
    def loss(self) -> Loss:
        """The loss of one record under a linear model, without a penalty."""
        return Loss(n_features=self.n_features, n_classes=self.n_classes, constant=self.constant)

    def total(
        self, *, dimension: int, sensitivity: float, value_bound: float, norm_bound: float | None = None
    ) -> VectorSum:
        """A sum of one vector from each party."""
        return VectorSum(
            dimension=dimension,
            sensitivity=sensitivity,
            value_bound=value_bound,
            n_parties=self.n_parties,
            colluders=self.colluders,
            quorum=self.quorum,
            norm_bound=norm_bound,
        )

    def check(self, table: Table) -> None:
        """Refuse a cohort that is not true of this party's table: the noise would be sized for another one."""
        ours, theirs = table.schema, self.schema
        fits = (
            (ours.n_columns, ours.n_classes) == (theirs.n_columns, theirs.n_classes)
            and (theirs.radius is None or (ours.radius is not None and ours.radius <= theirs.radius * _ROUNDING))
            and self.least_records <= table.n_units(self.unit) <= self.n_largest
            and table.n_records <= self.most_rows
        )
        if not fits:
            raise PolicyRefusal("the run's sizes, columns or bounds do not fit this party's table")


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a run promises each record or party.

    Attributes:
        method: who promises, for explanations.
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing; 0 asks for pure epsilon, None takes the public rule min(1e-6, 1 / n^2).
        relation: what neighbours are.
        calibration: "sound", or "paper" for what a document prints, which is NOT PRIVATE.
    """

    method: str
    epsilon: float
    delta: float | None = None
    relation: Relation = "replace-one"
    calibration: str = "sound"

    def check(self) -> None:
        """Refuse what promises nothing or makes no sense."""
        check_epsilon(self.epsilon)
        if self.delta is not None and self.delta != 0:
            check_delta(self.delta)
        check_choice("relation", self.relation, RELATIONS)
        check_choice("calibration", self.calibration, ("sound", "paper"))

    def settled(self, n_records: int | None = None) -> Promise:
        """The same with a delta that is a number; without a number of records, the largest that the rule gives.

        Where records may be added or removed their number is not public (0), and the rule gives the largest, too.
        """
        if self.delta is not None:
            return self
        if not n_records or self.relation == "add-remove":
            return replace(self, delta=LARGEST_DELTA)
        return replace(self, delta=min(LARGEST_DELTA, 1 / n_records**2))

    @property
    def settled_delta(self) -> float:
        """Delta as a number; of an open one, the largest that the rule gives."""
        return LARGEST_DELTA if self.delta is None else float(self.delta)

    @property
    def is_paper(self) -> bool:
        """Whether the calibration is that of a document."""
        return self.calibration == "paper"

    @property
    def is_exact(self) -> bool:
        """Whether no noise is added at all."""
        return math.isinf(self.epsilon)

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0

    @property
    def not_private(self) -> NotPrivate | None:
        """Why nothing is promised; None if something is."""
        if self.is_paper:
            return NotPrivate(why=f"{self.method} as the document prints it")
        if self.is_exact:
            return NotPrivate(why="epsilon is infinite: no noise is added")
        return None

    @property
    def rho(self) -> float:
        """That of the zero-concentrated privacy that implies (epsilon, delta); infinite where nothing is promised."""
        return math.inf if self.not_private is not None else rho_for(self.epsilon, self.settled_delta)

    @property
    def mu(self) -> float:
        """That of the Gaussian privacy that implies (epsilon, delta); infinite where nothing is promised."""
        return math.inf if self.not_private is not None else mu_for(self.epsilon, self.settled_delta)

    def event(self) -> Event:
        """What a run costs whose one release is calibrated to the promise."""
        return self.not_private or calibrated_event(float(self.epsilon), self.settled_delta)

    def grid(self, total: VectorSum) -> NoiseGrid:
        """The grid of that release: a document's own noise is added elsewhere, so its grid is exact."""
        if self.not_private is not None:
            return exact_grid(total)
        return calibrated_grid(total, epsilon=self.epsilon, delta=self.settled_delta)


def bound_of(*grids: NoiseGrid) -> Bound:
    """How long an addend on these grids is at most, noise included: one block a grid."""
    return tuple(NormBound(size=grid.total.dimension, norm=grid.norm_bound) for grid in grids)
