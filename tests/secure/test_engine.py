"""The layout of shares is that of the installed engine; nothing but computing needs the engine."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CenterError, SettingError
from tacit.rand import Rng
from tacit.secure import engine, layout
from tacit.secure.process import ProcessCenter
from tacit.secure.share import Shared, expand, join_all, join_real, split

SHAPES: list[tuple[int, ...]] = [(), (1,), (5,), (2, 3), (200, 2), (2, 1, 3)]


def make_io(n_nodes: int) -> tuple[Any, Any]:
    spu = pytest.importorskip("spu.libspu")
    kind = spu.ProtocolKind.ABY3 if n_nodes == 3 else spu.ProtocolKind.CHEETAH
    config = spu.RuntimeConfig(protocol=kind, field=spu.FieldType.FM128, fxp_fraction_bits=40)
    return spu, spu.IoWrapper(n_nodes, config)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_nodes", [2, 3])
def test_our_shares_are_the_engines(n_nodes: int, shape: tuple[int, ...]) -> None:
    spu, io = make_io(n_nodes)
    x = np.random.default_rng(0).normal(size=shape) * 1000
    numbers = np.rint(x * 2.0**40).astype(np.int64).ravel()
    shares = []
    for parts in split(numbers, rng=Rng.system(), n_nodes=n_nodes):
        share = spu.Share()
        words = expand(parts, numbers.size)
        share.meta, share.share_chunks = layout.describe(shape, n_nodes), layout.pack(Shared(words, shape))
        shares.append(share)
    np.testing.assert_allclose(io.Reconstruct(shares), x, atol=2**-40)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_nodes", [2, 3])
def test_the_engines_shares_are_ours(n_nodes: int, shape: tuple[int, ...]) -> None:
    spu, io = make_io(n_nodes)
    x = np.random.default_rng(1).normal(size=shape) * 1000
    shares = io.MakeShares(np.asarray(x), spu.Visibility.VIS_SECRET, -1)
    assert [share.meta for share in shares] == [layout.describe(shape, n_nodes)] * n_nodes
    held = [layout.unpack(share.meta, share.share_chunks, n_nodes) for share in shares]
    np.testing.assert_allclose(join_real(held), x, atol=2**-40)
    assert [layout.pack(shared) for shared in held] == [share.share_chunks for share in shares]


def test_a_large_share_travels_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_CHUNK_BYTES", 100)
    x = np.arange(40)
    held = [Shared(expand(parts, 40), (40,)) for parts in split(x, rng=Rng.system())]
    chunks = [layout.pack(shared) for shared in held]
    assert len(chunks[0]) > 2
    back = [layout.unpack(layout.describe((40,), 3), own, 3) for own in chunks]
    np.testing.assert_array_equal(join_all([shared.words for shared in back]), x)
    with pytest.raises(CenterError, match="parts missing"):
        layout.unpack(layout.describe((40,), 3), chunks[0][1:], 3)
    with pytest.raises(CenterError, match="do not fit its shape"):
        layout.unpack(layout.describe((39,), 3), chunks[0], 3)


@given(st.binary(max_size=60), st.lists(st.binary(max_size=60), max_size=3))
def test_anything_else_is_refused(description: bytes, chunks: list[bytes]) -> None:
    with pytest.raises(CenterError, match="the engine returned"):
        layout.unpack(description, chunks, 3)


def test_bits_and_public_values_are_not_taken_for_numbers() -> None:
    spu, io = make_io(3)
    for value, visibility in ((np.array([True]), "VIS_SECRET"), (np.array([1.0]), "VIS_PUBLIC")):
        (share, *_) = io.MakeShares(value, getattr(spu.Visibility, visibility), -1)
        with pytest.raises(CenterError, match="not a shared array of real numbers"):
            layout.unpack(share.meta, share.share_chunks, 3)


def test_the_installed_engine_is_the_one_that_is_declared() -> None:
    spu = pytest.importorskip("spu.libspu")
    assert spu._get_version() == engine.VERSION == importlib.metadata.version("spu")


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
    code = f"import sys, tacit, tacit.secure.process; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
