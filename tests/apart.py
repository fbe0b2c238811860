"""A native engine in a process of its own: if it falls over, or leaves threads behind, no other test is hurt."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def apart(function: Callable[..., T], *arguments: object) -> T:
    """What `function` returns, or raises, in a new process. A process that dies is an error that says so."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
