"""What the installed engine makes of our shares, and we of its: run in a process of its own, which alone loads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import CenterError
from tacit.rand import Rng
from tacit.secure.center import layout
from tacit.secure.share import Shared, expand, join_real, split

SHAPES: list[tuple[int, ...]] = [(), (1,), (5,), (2, 3), (200, 2), (2, 1, 3)]


def make_io() -> tuple[Any, Any]:
    import spu.libspu as spu

    config = spu.RuntimeConfig(protocol=spu.ProtocolKind.ABY3, field=spu.FieldType.FM128, fxp_fraction_bits=40)
    return spu, spu.IoWrapper(3, config)


def check_that_it_reads_ours() -> int:
    """The number of shapes that were tried."""
    spu, io = make_io()
    for shape in SHAPES:
        x = np.random.default_rng(0).normal(size=shape) * 1000
        numbers = np.rint(x * 2.0**40).astype(np.int64).ravel()
        shares = []
        for parts in split(numbers, rng=Rng.system()):
            share = spu.Share()
            words = expand(parts, numbers.size)
            share.meta, share.share_chunks = layout.describe(shape), layout.pack(Shared(words, shape))
            shares.append(share)
        np.testing.assert_allclose(io.Reconstruct(shares), x, atol=2**-40)
    return len(SHAPES)


def check_that_we_read_its() -> int:
    """The number of shapes that were tried."""
    spu, io = make_io()
    for shape in SHAPES:
        x = np.random.default_rng(1).normal(size=shape) * 1000
        shares = io.MakeShares(np.asarray(x), spu.Visibility.VIS_SECRET, -1)
        assert [share.meta for share in shares] == [layout.describe(shape)] * 3
        held = [layout.unpack(share.meta, share.share_chunks) for share in shares]
        np.testing.assert_allclose(join_real(held), x, atol=2**-40)
        assert [layout.pack(shared) for shared in held] == [share.share_chunks for share in shares]
    return len(SHAPES)


def check_that_others_are_refused() -> str:
    """The engine's own version."""
    spu, io = make_io()
    for value, visibility in ((np.array([True]), "VIS_SECRET"), (np.array([1.0]), "VIS_PUBLIC")):
        (share, *_) = io.MakeShares(value, getattr(spu.Visibility, visibility), -1)
        with pytest.raises(CenterError, match="not a shared array of real numbers"):
            layout.unpack(share.meta, share.share_chunks)
    return str(spu._get_version())
