"""Schemas with public bounds, tables as streams of encoded rows, and public data sets."""

from __future__ import annotations

from tacit.data.block import Block
from tacit.data.feature import Binary, Categorical, Numeric, Target
from tacit.data.schema import Encoded, Schema
from tacit.data.table import Table, TableCounts

__all__ = ["Binary", "Block", "Categorical", "Encoded", "Numeric", "Schema", "Table", "TableCounts", "Target"]
