"""What happened: frozen facts about a release, which `accounting` interprets.

An event says what was drawn, not what it costs. Ignorance is never free: what cannot be accounted for is `NotPrivate`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import SettingError, WireError
from tacit.privacy.guarantee import RELATIONS, Relation

Json = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Free:
    """A function of public values only."""


@dataclass(frozen=True, kw_only=True)
class Pure:
    """A release that is epsilon-differentially private."""

    epsilon: float

    def __post_init__(self) -> None:
        _check_positive("Pure.epsilon", self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Approximate:
    """A release that is (epsilon, delta)-differentially private, and of which nothing more is known."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _check_positive("Approximate.epsilon", self.epsilon)
        if not 0 < self.delta < 1:
            raise SettingError(
                f"Approximate.delta = {self.delta} must lie in (0, 1); without a delta it is a Pure event"
            )


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """A vector with continuous Gaussian noise; `noise_multiplier` is the standard deviation over the L2 sensitivity."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check_positive("Gaussian.noise_multiplier", self.noise_multiplier)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian:
    """An integer vector with discrete Gaussian noise, or with a sum of such, counted as concentrated privacy.

    Ledgers hold it of earlier releases. Sums of fine shares are `Gaussian` events now (`noise.continuous`).

    `noise_multiplier` is the noise parameter over the L2 sensitivity, both in grid units and the sensitivity with
    the effect of rounding included.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check_positive("DiscreteGaussian.noise_multiplier", self.noise_multiplier)


@dataclass(frozen=True, kw_only=True)
class Zcdp:
    """A release that is rho-zero-concentrated differentially private (Bun and Steinke 2016)."""

    rho: float

    def __post_init__(self) -> None:
        _check_positive("Zcdp.rho", self.rho)


@dataclass(frozen=True, kw_only=True)
class PoissonSampled:
    """`event`, seen on a sample that each record enters independently with `probability`."""

    probability: float
    event: Gaussian

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise SettingError(f"a sampling probability of {self.probability} does not lie in (0, 1]")


@dataclass(frozen=True, kw_only=True)
class Composed:
    """Events that one after the other touched the same records; later ones may depend on earlier outcomes."""

    events: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """The same event, `count` times over on the same records."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise SettingError(f"an event cannot happen {self.count} times")


@dataclass(frozen=True, kw_only=True)
class Under:
    """`event`, whose numbers hold under each of these relations, and under no other.

    An event without this is stated for the relation that is claimed, and a ledger takes it for replace-one.
    `PoissonSampled` needs no such word: its cost is known under either relation.
    """

    relations: tuple[Relation, ...]
    event: Event

    def __post_init__(self) -> None:
        if not self.relations or any(relation not in RELATIONS for relation in self.relations):
            raise SettingError(f"relations = {self.relations!r} must be among {', '.join(RELATIONS)}")


@dataclass(frozen=True, kw_only=True)
class NotPrivate:
    """A release that no epsilon bounds, and why."""

    why: str


Event = (
    Free
    | Pure
    | Approximate
    | Gaussian
    | DiscreteGaussian
    | Zcdp
    | PoissonSampled
    | Composed
    | Repeated
    | Under
    | NotPrivate
)

_LEAVES: dict[str, type[Free | Pure | Approximate | Gaussian | DiscreteGaussian | Zcdp | NotPrivate]] = {
    "free": Free,
    "pure": Pure,
    "approximate": Approximate,
    "gaussian": Gaussian,
    "discrete-gaussian": DiscreteGaussian,
    "zcdp": Zcdp,
    "not-private": NotPrivate,
}
_NAMES = {kind: name for name, kind in _LEAVES.items()}


def to_json(event: Event) -> Json:
    """The event as the plain values that a ledger and a message hold."""
    match event:
        case PoissonSampled(probability=q, event=inner):
            return {"kind": "poisson-sampled", "probability": q, "event": to_json(inner)}
        case Composed(events=events):
            return {"kind": "composed", "events": [to_json(e) for e in events]}
        case Repeated(event=inner, count=count):
            return {"kind": "repeated", "event": to_json(inner), "count": count}
        case Under(relations=relations, event=inner):
            return {"kind": "under", "relations": list(relations), "event": to_json(inner)}
        case _:
            return {"kind": _NAMES[type(event)], **vars(event)}


def why_not_private(event: Event) -> str:
    """Why no epsilon bounds the event; empty if one does."""
    match event:
        case NotPrivate(why=why):
            return why
        case Composed(events=events):
            return next((why for why in map(why_not_private, events) if why), "")
        case Repeated(event=inner) | Under(event=inner):
            return why_not_private(inner)
        case _:
            return ""


def is_same_cost(first: Event, second: Event) -> bool:
    """Whether two events are one; what no epsilon bounds is as good as anything else of that kind."""
    return first == second or (bool(why_not_private(first)) and bool(why_not_private(second)))


def from_json(value: object) -> Event:
    """The event that `to_json` wrote; anything else is a `WireError`."""
    try:
        return _from_json(value)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WireError(f"{value!r} is not an event") from error


def _from_json(value: object) -> Event:
    if not isinstance(value, dict):
        raise TypeError("an event is an object")
    fields = dict(value)
    match fields.pop("kind"):
        case "poisson-sampled":
            inner = _from_json(fields["event"])
            if not isinstance(inner, Gaussian):
                raise TypeError("only a Gaussian event is sampled")
            return PoissonSampled(probability=float(fields["probability"]), event=inner)
        case "composed":
            return Composed(events=tuple(_from_json(e) for e in fields["events"]))
        case "repeated":
            return Repeated(event=_from_json(fields["event"]), count=int(fields["count"]))
        case "under":
            relations = tuple(fields["relations"])
            if not all(type(relation) is str for relation in relations):
                raise TypeError("a relation has a name")
            return Under(relations=relations, event=_from_json(fields["event"]))
        case kind:
            if not all(type(told) in (bool, int, float, str) for told in fields.values()):
                raise TypeError("an event tells of numbers and words, not of arrays")
            return _LEAVES[kind](**fields)


def _check_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise SettingError(f"{name} = {value} must be positive and finite; no noise at all is a NotPrivate event")
