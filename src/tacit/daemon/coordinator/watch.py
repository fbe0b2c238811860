"""The coordinator's watch over its message server: who sends more than a member may is shut out for a while.

The server itself bounds a message's length and a connection's subscriptions. It has no bound on how much a key sends in
all, so the coordinator's daemon asks it once a second what each connection has sent, and cuts who is over.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tacit.errors import WireError

REQUEST = json.dumps({"auth": True, "limit": 20_000, "state": 2}).encode()  # open and lately closed connections
SHUT_OUT_SECONDS = 600.0
_MOST_SENDERS = 50_000  # that are remembered: a server may make up names without end
_FORGET_SECONDS = 120.0  # a server that is silent for so long is gone; it comes back under another name


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What one key may send: so much a second on average, and so much at once; and how many connections it may open.

    A party that answers 500 rounds a second sends a tenth of this.
    """

    messages: float = 5_000.0
    bytes: float = 64e6
    burst_seconds: float = 8.0
    connections: int = 8


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What one connection has sent since it was opened."""

    id: tuple[str, int]  # the server, and the connection's number there
    nkey: str
    messages: int
    bytes: int
    is_open: bool


class Pace:
    """Lets so many messages a second through from each sender, and a few more at once; the others are not looked at."""

    def __init__(self, *, per_second: float = 10.0, burst: float = 50.0) -> None:
        self._per_second = per_second
        self._burst = burst
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # sender -> level, when it was so

    def allows(self, sender: str, now: float) -> bool:
        """Whether to look at a message of this sender that came now."""
        level, then = self._levels.get(sender, (0.0, now))
        level = max(0.0, level - (now - then) * self._per_second)
        is_allowed = level < self._burst
        self._levels[sender] = (level + is_allowed, now)
        self._levels.move_to_end(sender)
        if len(self._levels) > _MOST_SENDERS:
            self._levels.popitem(last=False)
        return is_allowed


@dataclass
class _Levels:
    """How full a key's allowance is, and how many connections it has open."""

    messages: float = 0.0
    bytes: float = 0.0
    n_open: int = 0


@dataclass
class Watch:
    """What keys have sent lately.

    Guarantees:
        A key that stays within its allowance is never named. One that sends for t seconds more than
        `(t + burst_seconds)` seconds' allowance is named, if its connections are seen: they are when they are open at
        a look, or among those that the server still lists as closed.
    """

    allowance: Allowance = field(default_factory=Allowance)
    _sent: dict[tuple[str, int], Sent] = field(default_factory=dict)
    _levels: dict[str, _Levels] = field(default_factory=dict)
    _time: float | None = None
    _heard: dict[str, float] = field(default_factory=dict)  # when each server last told of a connection

    def over(self, connections: Iterable[Sent], now: float) -> Mapping[str, str]:
        """The keys that have sent too much, each with what it was; call it again and again with the time."""
        passed = 0.0 if self._time is None else max(0.0, now - self._time)
        self._time = now
        for level in self._levels.values():
            level.messages = max(0.0, level.messages - passed * self.allowance.messages)
            level.bytes = max(0.0, level.bytes - passed * self.allowance.bytes)
            level.n_open = 0
        seen: dict[tuple[str, int], Sent] = {}
        for sent in connections:
            seen[sent.id] = sent
            before = self._sent.get(sent.id)
            level = self._levels.setdefault(sent.nkey, _Levels())
            level.messages += sent.messages - (before.messages if before else 0)
            level.bytes += sent.bytes - (before.bytes if before else 0)
            level.n_open += sent.is_open
        self._sent = self._unheard(seen, now) | seen
        named = {nkey: told for nkey, level in self._levels.items() if (told := self._fault(level))}
        self._levels = {
            nkey: level
            for nkey, level in self._levels.items()
            if nkey not in named and (level.messages or level.bytes or level.n_open)
        }
        return named

    def _unheard(self, seen: Mapping[tuple[str, int], Sent], now: float) -> dict[tuple[str, int], Sent]:
        """What was known of servers of a cluster that did not answer this time: it must not be counted again."""
        self._heard |= {server: now for server, _ in seen}
        self._heard = {server: then for server, then in self._heard.items() if now - then < _FORGET_SECONDS}
        silent = {server for server, then in self._heard.items() if then != now}
        return {id_: sent for id_, sent in self._sent.items() if id_[0] in silent}

    def _fault(self, level: _Levels) -> str:
        may = self.allowance
        if level.messages > may.messages * may.burst_seconds:
            return f"more than {may.messages:,.0f} messages a second"
        if level.bytes > may.bytes * may.burst_seconds:
            return f"more than {may.bytes:,.0f} bytes a second"
        if level.n_open > may.connections:
            return f"more than {may.connections} connections"
        return ""


def read_connections(reply: bytes) -> list[Sent]:
    """The connections in the server's reply to `REQUEST`; a `WireError` for anything else."""
    try:
        told = json.loads(reply)
        listed = told["data"].get("connections") or []
        return [
            Sent(
                id=(str(told["server"]["id"]), int(one["cid"])),
                nkey=str(one["authorized_user"]),
                messages=int(one["in_msgs"]),
                bytes=int(one["in_bytes"]),
                is_open="stop" not in one,
            )
            for one in listed
            if one.get("authorized_user")
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WireError(f"the message server does not list its connections ({type(error).__name__})") from error
