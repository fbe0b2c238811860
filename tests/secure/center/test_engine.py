"""The layout of shares is that of the installed engine; nothing but computing needs the engine."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CenterError, SettingError
from tacit.rand import Rng
from tacit.secure.center import engine, layout
from tacit.secure.center.process import ProcessCenter
from tacit.secure.share import Shared, expand, join_all, split

from ...apart import apart
from .engine_layout import SHAPES, check_that_it_reads_ours, check_that_others_are_refused, check_that_we_read_its

needs_engine = pytest.mark.skipif(find_spec("spu") is None, reason="the engine is not installed")


@needs_engine
def test_our_shares_are_the_engines() -> None:
    assert apart(check_that_it_reads_ours) == len(SHAPES)


@needs_engine
def test_the_engines_shares_are_ours() -> None:
    assert apart(check_that_we_read_its) == len(SHAPES)


def test_no_test_loads_the_engine_into_the_process_of_the_others() -> None:
    tests = Path(__file__).parents[2]
    loads = [path.name for path in tests.rglob("*.py") if re.search(r"^\s*(import|from) spu\b", path.read_text(), re.M)]
    loads += [path.name for path in tests.rglob("*.py") if re.search(r"importorskip\(.spu", path.read_text())]
    assert loads == ["engine_layout.py"]


def test_a_large_share_travels_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_CHUNK_BYTES", 100)
    x = np.arange(40)
    held = [Shared(expand(parts, 40), (40,)) for parts in split(x, rng=Rng.system())]
    chunks = [layout.pack(shared) for shared in held]
    assert len(chunks[0]) > 2
    back = [layout.unpack(layout.describe((40,)), own) for own in chunks]
    np.testing.assert_array_equal(join_all([shared.words for shared in back]), x)
    with pytest.raises(CenterError, match="parts missing"):
        layout.unpack(layout.describe((40,)), chunks[0][1:])
    with pytest.raises(CenterError, match="do not fit its shape"):
        layout.unpack(layout.describe((39,)), chunks[0])


@given(st.binary(max_size=60), st.lists(st.binary(max_size=60), max_size=3))
def test_anything_else_is_refused(description: bytes, chunks: list[bytes]) -> None:
    with pytest.raises(CenterError, match="the engine returned"):
        layout.unpack(description, chunks)


@needs_engine
def test_bits_and_public_values_are_not_taken_for_numbers_by_the_engine_that_is_declared() -> None:
    assert apart(check_that_others_are_refused) == engine.VERSION == importlib.metadata.version("spu")


def test_without_the_engine_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(SettingError, match=r"pip install 'tacit\[secure\]'"):
        ProcessCenter()
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.1")
    with pytest.raises(SettingError, match=r"SPU 0.1 is installed, 0.9.5 is needed"):
        ProcessCenter()


def test_the_core_loads_no_engine() -> None:
    heavy = ("spu", "jax", "cryptography")
    code = f"import sys, tacit, tacit.secure.center.process; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
