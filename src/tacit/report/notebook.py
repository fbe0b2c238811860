"""What a notebook shows: a fitted model in short, and how far a run is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, Protocol


class Watched(Protocol):
    """Whoever tells of each round of a run."""

    on_round: Callable[[int, str], None] | None


@contextmanager
def rounds_shown(parties: Watched, what: str) -> Iterator[None]:
    """In a notebook, one line that counts the rounds, gone when the run is over; elsewhere, and where somebody else
    listens already, nothing.
    """
    display = _notebook_display()
    if display is None or parties.on_round is not None:
        yield
        return
    html = sys.modules["IPython.display"].HTML
    line = display(html(f"<em>{escape(what)} ...</em>"), display_id=True)
    parties.on_round = lambda rounds, step: line.update(
        html(f"<em>{escape(what)}: round {rounds}, {escape(step)}</em>")
    )
    try:
        yield
    finally:
        parties.on_round = None
        line.update(html(""))


def _notebook_display() -> Any:
    """IPython's `display`, if this runs in a notebook's kernel; nothing is imported to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return getattr(sys.modules.get("IPython.display"), "display", None)
