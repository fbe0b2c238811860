"""The coordinator wants a program run on what two runs answered: a curvature of one, a gradient of another."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import CenterError

from ..secure.center.signed_center import SignedCenter

PARTIES = ("north", "south")


def sealed(center: SignedCenter, run: str, use: str) -> dict[str, list[bytes]]:
    """What every party seals in a run, for the center to keep."""
    return {name: center.sealed(name, [1, 2], 3, context=f"{run} {use}", use=use, run=run) for name in PARTIES}


def test_what_was_sealed_in_one_run_is_not_kept_for_another() -> None:
    center = SignedCenter(PARTIES)
    center.keep("first", "gradient", "first gradient", sealed(center, "first", "gradient"), (2,))
    with pytest.raises(CenterError, match="'north' sealed its part in another run than 'first'"):
        center.keep("first", "gradient", "second gradient", sealed(center, "second", "gradient"), (2,))
    center.keep("second", "gradient", "second gradient", sealed(center, "second", "gradient"), (2,))


def test_a_party_cannot_be_spoken_for() -> None:
    """Whoever relays an envelope cannot change the run that its party signed."""
    center = SignedCenter(PARTIES)
    parts = sealed(center, "second", "gradient")
    with pytest.raises(CenterError, match="another run"):
        center.keep("first", "gradient", "second gradient", parts, (2,))
    assert np.array_equal(center.open_sum("q", {"north": center.sealed("north", [1, 2], 3)}), [1, 2])
