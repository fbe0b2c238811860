"""A daemon's own log: one line an event, as JSON, on a stream. Nothing secret and nothing of a record goes in."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import TextIO

_QUIET_SECONDS = 1.0
_LINES_PER_KIND = 20  # in that time; a flood of forged letters must not fill the disk
_LONGEST_QUIET = 600.0  # what a kind of event is slowed down to, while it goes on like that
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


class Journal:
    """Events, one line each.

    Guarantees:
        At most 20 lines a second are written for each kind of event, and how many were left out is told with the next.
        Of events that whoever sends can bring about without end, the time for 20 lines doubles up to ten minutes while
        they go on: at most a few megabytes a day, however many come. A text in a line is cut to 500 characters.
    """

    def __init__(self, who: str, stream: TextIO | None = None) -> None:
        self._who = who
        self._stream = stream
        self._lock = threading.Lock()
        self._window: dict[str, tuple[float, int, float]] = {}  # event -> start of its window, lines in it, length

    def note(self, event: str, **facts: str | int | float | None) -> None:
        """Write one event down."""
        now = time.time()
        with self._lock:
            start, count, length = self._window.get(event, (now, 0, _QUIET_SECONDS))
            left_out = 0
            if now - start >= length:
                left_out = max(0, count - _LINES_PER_KIND)
                is_flood = event in _ENDLESS and left_out > 0 and now - start < 2 * length
                start, count, length = now, 0, min(2 * length, _LONGEST_QUIET) if is_flood else _QUIET_SECONDS
            self._window[event] = (start, count + 1, length)
            if count >= _LINES_PER_KIND:
                return
            line: dict[str, object] = {"time": _stamp(now), "who": self._who, "event": event}
            line |= {
                key: value[:_MOST_CHARACTERS] if isinstance(value, str) else value
                for key, value in facts.items()
                if value is not None
            }
            if left_out:
                line["left_out"] = left_out
            stream = sys.stdout if self._stream is None else self._stream
            try:
                print(json.dumps(line), file=stream, flush=True)
            except (OSError, ValueError):
                return  # a full disk or a closed terminal must not stop a daemon


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
