"""A daemon's own log: one line an event, as JSON, on a stream. Nothing secret and nothing of a record goes in."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass
from typing import TextIO

_QUIET_SECONDS = 1.0
_LINES_PER_KIND = 20  # in that time; a flood of forged letters must not fill the disk
_LONGEST_QUIET = 600.0  # what a kind of event is slowed down to, while it goes on like that
_LINES_A_DAY, _ENDLESS_LINES_A_DAY = 20_000, 2_000  # of one kind, however patiently they come
_MOST_CHARACTERS = 500
_ENDLESS = frozenset(
    {
        "not-believed",
        "refused",
        "policy-refused",
        "failed",
        "not-permitted",
        "stranger-refused",
        "invitation-refused",
        "table-does-not-fit",
        "cannot-write",
    }
)  # events that whoever sends can bring about without end


@dataclass
class _Window:
    """What was written of one kind of event: since `start`, and on this day; and what was not, since the last line."""

    start: float
    length: float = _QUIET_SECONDS
    count: int = 0
    day: int = 0
    lines_today: int = 0
    left_out: int = 0

    def allows(self, now: float, *, endless: bool) -> bool:
        """Whether an event that comes now gets a line; counts it in any case."""
        if now - self.start >= self.length:
            is_flood = endless and self.count > _LINES_PER_KIND and now - self.start < 2 * self.length
            self.length = min(2 * self.length, _LONGEST_QUIET) if is_flood else _QUIET_SECONDS
            self.start, self.count = now, 0
        if self.day != (today := int(now // 86400)):
            self.day, self.lines_today = today, 0
        self.count += 1
        most = _ENDLESS_LINES_A_DAY if endless else _LINES_A_DAY
        is_allowed = self.count <= _LINES_PER_KIND and self.lines_today < most
        self.lines_today += is_allowed
        self.left_out += not is_allowed
        return is_allowed


class Journal:
    """Events, one line each.

    Guarantees:
        Of each kind of event at most 20 lines a second and 20,000 a day are written; of events that whoever sends can
        bring about without end, at most 2,000 a day. Of these the time for 20 lines also doubles up to ten minutes
        while they come faster. How many were left out is told with the next line. A text in a line is cut to 500
        characters. So a kind takes a few megabytes a day, however many come and however patiently.
    """

    def __init__(self, who: str, stream: TextIO | None = None) -> None:
        self._who = who
        self._stream = stream
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}

    def note(self, event: str, **facts: str | int | float | None) -> None:
        """Write one event down."""
        now = time.time()
        with self._lock:
            window = self._windows.setdefault(event, _Window(start=now))
            if not window.allows(now, endless=event in _ENDLESS):
                return
            line: dict[str, object] = {"time": _stamp(now), "who": self._who, "event": event}
            line |= {
                key: value[:_MOST_CHARACTERS] if isinstance(value, str) else value
                for key, value in facts.items()
                if value is not None
            }
            if window.left_out:
                line["left_out"], window.left_out = window.left_out, 0
            stream = sys.stdout if self._stream is None else self._stream
            try:
                print(json.dumps(line), file=stream, flush=True)
            except (OSError, ValueError):
                return  # a full disk or a closed terminal must not stop a daemon


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
