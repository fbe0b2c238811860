"""Forecasts for the study editor: one at a time in a process of its own, remembered, and dropped when outdated."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tacit.secure.center.child import ChildProcess
from tacit.studies.forecast_process import ForecastQuestion

_PROGRAM = ("-m", "tacit.studies.forecast_process")
MOST_KEPT = 64  # answers
MOST_WAITING = 20  # questions
_TOO_BUSY = "many forecasts are waiting; look again in a minute"


@dataclass(frozen=True, kw_only=True)
class ForecastAnswer:
    """What is known of a forecast: how far it is (0 to 1), its result, or why there is none."""

    progress: float = 0.0
    result: dict[str, Any] | None = None
    error: str = ""

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come."""
        return self.result is not None or bool(self.error)


@dataclass
class _Wait:
    question: ForecastQuestion
    owners: set[str]
    progress: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)


class Forecaster:
    """Answers questions in the order in which they came.

    Guarantees:
        Each owner has one question at most under way: a newer one takes the older one's place, and what nobody waits
        for any more is stopped. A forecast that takes longer than `seconds` ends with an error.
    """

    def __init__(self, folder: Path, *, seconds: float = 90.0) -> None:
        """Start no process yet; what it prints goes to a file in the folder."""
        self._log = folder / "forecast.log"
        self._seconds = seconds
        self._lock = threading.Condition()
        self._waiting: OrderedDict[str, _Wait] = OrderedDict()
        self._answers: OrderedDict[str, ForecastAnswer] = OrderedDict()
        self._child: ChildProcess | None = None
        self._running = ""  # the key of the question that the process works on
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def ask(self, question: ForecastQuestion, owner: str) -> ForecastAnswer:
        """What is known of the answer by now; ask again to know more."""
        key = json.dumps(asdict(question), sort_keys=True)
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
            self._leave(owner, key)
            if key not in self._waiting and len(self._waiting) >= MOST_WAITING:
                return ForecastAnswer(error=_TOO_BUSY)
            wait = self._waiting.setdefault(key, _Wait(question, set()))
            wait.owners.add(owner)
            self._start()
            self._lock.notify_all()
            return ForecastAnswer(progress=wait.progress)

    def wait(self, question: ForecastQuestion, owner: str, seconds: float) -> ForecastAnswer:
        """As `ask`, and wait for the answer for so long at most; for pages without JavaScript, in a thread."""
        answer = self.ask(question, owner)
        with self._lock:
            wait = self._waiting.get(json.dumps(asdict(question), sort_keys=True))
        if wait is not None:
            wait.done.wait(seconds)
        return self.ask(question, owner) if not answer.is_done else answer

    def close(self) -> None:
        """End the process and the thread."""
        with self._lock:
            self._is_closed = True
            self._kill()
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _leave(self, owner: str, key: str) -> None:
        """Take an owner from all questions but this one; stop what nobody waits for."""
        for other, wait in [*self._waiting.items()]:
            if other == key:
                continue
            wait.owners.discard(owner)
            if not wait.owners:
                if other == self._running:
                    self._kill()  # the thread takes it out
                else:
                    self._waiting.pop(other).done.set()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    break
                key, wait = next(iter(self._waiting.items()))
                self._running = key
                if self._child is None or not self._child.is_alive:
                    self._child = ChildProcess(_PROGRAM, (), self._log)
                child = self._child
            answer = self._answered(child, wait)
            with self._lock:
                self._running = ""
                self._waiting.pop(key, None)
                if answer is not None and not self._is_closed:
                    self._answers[key] = answer
                    while len(self._answers) > MOST_KEPT:
                        self._answers.popitem(last=False)
                wait.done.set()
        if self._child is not None:
            self._child.pipe.close()
            self._child.join()

    def _answered(self, child: ChildProcess, wait: _Wait) -> ForecastAnswer | None:
        """The process's answer; None if it was stopped because nobody waits."""
        deadline = time.monotonic() + self._seconds
        try:
            child.pipe.send_bytes(json.dumps(asdict(wait.question)).encode())
            while child.pipe.poll(max(0.0, deadline - time.monotonic())):
                told = json.loads(child.pipe.recv_bytes())
                if "of" in told:
                    wait.progress = told["done"] / max(1, told["of"])
                else:
                    return ForecastAnswer(progress=1.0, result=told.get("result"), error=told.get("error", ""))
            words = f"the forecast takes longer than {self._seconds:g} s; expect fewer records or columns"
        except (OSError, EOFError):
            words = "" if not wait.owners else "the forecast broke off; the study may be too large for this machine"
        child.kill()
        child.pipe.close()
        child.join()
        with self._lock:
            self._child = None
        return ForecastAnswer(error=words) if words else None
