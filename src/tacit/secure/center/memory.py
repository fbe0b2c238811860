"""What a node has already agreed to, for good: a sum over these parties, a program with these arguments."""

from __future__ import annotations

import threading
from pathlib import Path

from tacit import wire
from tacit.storage import open_database
from tacit.wire import Value

_TABLES = "CREATE TABLE IF NOT EXISTS agreed (question TEXT PRIMARY KEY, answer TEXT NOT NULL);"


class Memory:
    """Remembers the first answer to each question, in a file or, without one, as long as the process lives."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._database = open_database(path, _TABLES, use="as a node's memory")

    def agrees(self, question: Value, answer: Value) -> bool:
        """Whether `answer` is the first that was ever given to `question`.

        Guarantees:
            When this returns true, no other answer to the question will ever be agreed to, also after a restart if
            there is a file.
        """
        key, value = wire.digest(question), wire.digest(answer)
        with self._lock:
            self._database.execute("INSERT OR IGNORE INTO agreed VALUES (?, ?)", (key, value))
            (first,) = self._database.execute("SELECT answer FROM agreed WHERE question = ?", (key,)).fetchone()
        return bool(first == value)

    def close(self) -> None:
        """Close the file."""
        self._database.close()
