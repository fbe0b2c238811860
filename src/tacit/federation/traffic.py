"""What travelled in a run, and what each party gave in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tacit.privacy.event import Event


@dataclass
class Given:
    """What one party gave in a run: encoded bytes, and the event that each answer was charged with."""

    n_bytes: int = 0
    events: list[Event] = field(default_factory=list)


@dataclass
class Traffic:
    """What travelled in one run, in encoded bytes: up from the parties and the center, down to them."""

    rounds: int = 0
    messages: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    given: dict[str, Given] = field(default_factory=dict)
