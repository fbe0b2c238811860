"""The documents' tables and figures, made again."""

from __future__ import annotations

from collections.abc import Callable

from tacit.reproduce import pathak
from tacit.reproduce.result import Result

__all__ = ["REPRODUCTIONS", "Result"]

REPRODUCTIONS: dict[str, Callable[..., Result]] = {"pathak": pathak.figure_2}
