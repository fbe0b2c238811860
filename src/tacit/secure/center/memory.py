"""What a node has already agreed to, for good: a sum of these parties' envelopes, a program with these arguments.

A question's sum is taken over one set of parties: the difference of two would show one party's part. And it is taken
of one set of envelopes: of two answers to one question, each with noise of its own, the mean has less.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from tacit import wire
from tacit.errors import CenterError
from tacit.secure.center.ledger_watch import TABLES, LedgerWatch
from tacit.secure.envelope import LedgerMark
from tacit.storage import open_database
from tacit.wire import Value

FILE = "agreed.sqlite"

_OTHER_PARTIES = "this sum was opened before over other parties; the difference would show one party's part"

_TABLES = f"""
CREATE TABLE IF NOT EXISTS agreed (question TEXT PRIMARY KEY, answer TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS told (context TEXT PRIMARY KEY, parties TEXT NOT NULL);
{TABLES}
"""


class Memory:
    """Remembers the first answer to each question, in a file or, without one, as long as the process lives."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._database = open_database(path, _TABLES, use="as a node's memory")
        self.ledgers = LedgerWatch(self._database)

    def agrees(self, question: Value, answer: Value) -> bool:
        """Whether `answer` is the first that was ever given to `question`.

        Guarantees:
            When this returns true, no other answer to the question will ever be agreed to, also after a restart if
            there is a file.
        """
        with self._lock:
            return self._first_answer(question, answer) in (None, wire.digest(answer))

    def tell_of(self, context: str, parties: Iterable[str]) -> None:
        """Note that the other nodes are told of a sum over these parties; there can only be fewer from then on.

        A sum is given only for the parties that the others were told of last, and after it of no others. So no two
        honest nodes ever give their shares of sums over different parties, whatever each of them is asked.

        Raises:
            CenterError: if the others were told of fewer, or the question was summed over other parties.
        """
        names: list[Value] = [*sorted(parties)]
        with self._lock, self._database.transaction():
            before = self._told(context)
            known = self._database.execute(
                "SELECT answer FROM agreed WHERE question = ?", (wire.digest(["parties", context]),)
            ).fetchone()
            if known is not None and str(known[0]) != wire.digest(names):
                raise CenterError(_OTHER_PARTIES)
            if before is not None and not set(names) <= set(before):
                raise CenterError("a sum over fewer parties was checked before; parties only become fewer")
            if before != names:
                self._database.execute("INSERT OR REPLACE INTO told VALUES (?, ?)", (context, json.dumps(names)))

    def _told(self, context: str) -> list[Value] | None:
        row = self._database.execute("SELECT parties FROM told WHERE context = ?", (context,)).fetchone()
        return None if row is None else list(json.loads(row[0]))

    def check_marks(self, context: str, use: str, marks: Mapping[str, LedgerMark]) -> None:
        """Refuse parties whose ledgers will not do, before any node gives a share; takes no number yet.

        A party may sign another state for each node. If one node noticed that only when it gives its share, the others
        would have given theirs, of a sum that can then neither be opened nor taken again without that party.

        Raises:
            AddendRefused: naming them. What was summed before is not looked at again.
        """
        with self._lock, self._database.transaction():
            question = wire.digest(["envelopes", context, use])
            if self._database.execute("SELECT 1 FROM agreed WHERE question = ?", (question,)).fetchone() is None:
                self.ledgers.check(marks)

    def take_sum(
        self,
        context: str,
        use: str,
        envelopes: Mapping[str, bytes],
        marks: Mapping[str, LedgerMark],
        *,
        is_told: bool = False,
    ) -> None:
        """Agree to one sum: over these parties, of these envelopes, for good; a second call with the same is as good.

        Args:
            context: the question that the envelopes answer.
            use: what they were sealed for.
            envelopes: by party.
            marks: the states of the parties' ledgers, where parties sign them.
            is_told: whether the other nodes must have been told of exactly these parties.

        Raises:
            CenterError: if the question was summed before over other parties or of other envelopes, or if a party's
                ledger was lost, copied or taken back since. Then nothing is remembered of this call.
        """
        names: list[Value] = [*sorted(envelopes)]
        digests: Value = {party: hashlib.sha256(envelopes[party]).digest() for party in sorted(envelopes)}
        with self._lock, self._database.transaction():
            if is_told and self._told(context) != names:
                raise CenterError("the other nodes were told of other parties in this sum; let all check the same")
            if self._first_answer(["parties", context], names) not in (None, wire.digest(names)):
                raise CenterError(_OTHER_PARTIES)
            known = self._first_answer(["envelopes", context, use], digests)
            if known not in (None, wire.digest(digests)):
                raise CenterError(
                    "this question was answered before, by the same parties with other envelopes: the ledger of one of "
                    "them was lost or taken back, and fresh noise for an old question would average out"
                )
            if known is None:
                self.ledgers.take(marks)

    def take_shape(self, context: str, name: str, shape: Iterable[int]) -> None:
        """Agree to one shape of what is kept; a `CenterError` if it was kept in another before."""
        if not self.agrees(["shape", context, name], [*shape]):
            raise CenterError(f"{name!r} was kept in another shape before; the same numbers would be read twice")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _first_answer(self, question: Value, answer: Value) -> str | None:
        """The digest of the first answer to a question; None if that is this one, which is then written down."""
        key, value = wire.digest(question), wire.digest(answer)
        done = self._database.execute("INSERT OR IGNORE INTO agreed VALUES (?, ?)", (key, value))
        if done.rowcount:
            return None
        (first,) = self._database.execute("SELECT answer FROM agreed WHERE question = ?", (key,)).fetchone()
        return str(first)
