"""Whose data a promise of privacy is about: one record, all records of one person, or all records of one party."""

from __future__ import annotations

from typing import Literal

Unit = Literal["record", "person", "party"]

UNITS: tuple[Unit, ...] = ("record", "person", "party")
