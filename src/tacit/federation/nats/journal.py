"""A daemon's own log: one line an event, as JSON, on a stream. Nothing secret and nothing of a record goes in."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import TextIO

_QUIET_SECONDS = 1.0
_LINES_PER_KIND = 20  # in that time; a flood of forged letters must not fill the disk


class Journal:
    """Events, one line each.

    Guarantees:
        At most a few lines a second are written for each kind of event; how many were left out is told with the next.
    """

    def __init__(self, who: str, stream: TextIO | None = None) -> None:
        self._who = who
        self._stream = stream
        self._lock = threading.Lock()
        self._window: dict[str, tuple[float, int]] = {}  # event -> start of its window, lines in it

    def note(self, event: str, **facts: str | int | float | None) -> None:
        """Write one event down."""
        now = time.time()
        with self._lock:
            start, count = self._window.get(event, (now, 0))
            left_out = 0
            if now - start >= _QUIET_SECONDS:
                left_out = max(0, count - _LINES_PER_KIND)
                start, count = now, 0
            self._window[event] = (start, count + 1)
            if count >= _LINES_PER_KIND:
                return
            line: dict[str, object] = {"time": _stamp(now), "who": self._who, "event": event}
            line |= {key: value for key, value in facts.items() if value is not None}
            if left_out:
                line["left_out"] = left_out
            stream = sys.stdout if self._stream is None else self._stream
            try:
                print(json.dumps(line), file=stream, flush=True)
            except (OSError, ValueError):
                return  # a full disk or a closed terminal must not stop a daemon


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
