"""A center of real processes, started once for all tests of this folder that need one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

import numpy as np
import numpy.typing as npt
import pytest

from tacit.rand import Rng
from tacit.secure.center.center import MessageCenter
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.center.process import ProcessCenter
from tacit.secure.envelope import Label, LedgerMark, seal

UNIT = 2.0**40
N_PARTIES = 3

Keep = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # one worker, one center
        if "computing" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("center"))


@pytest.fixture(scope="session")
def computing() -> ProcessCenter:
    center = EmbeddedCenter().computing()
    assert isinstance(center, ProcessCenter)
    return center


_numbers = count(1)


def mark() -> LedgerMark:
    """The state of a ledger that goes on."""
    return LedgerMark(epoch="e", number=next(_numbers), line=0, head="")


def seal_all(
    center: MessageCenter,
    name: str,
    value: npt.ArrayLike,
    context: str,
    n_parties: int = N_PARTIES,
    contrasts: str = "",
) -> Mapping[str, list[bytes]]:
    """The envelopes of parties whose addends sum to `value`, and who declare contrasts for `variances`."""
    array = np.rint(np.asarray(value, dtype=np.float64) * UNIT).astype(np.int64).ravel()
    addends = [array - (n_parties - 1) * (array // n_parties)] + [array // n_parties] * (n_parties - 1)
    rng = Rng.system()
    labels = [
        Label(context=context, party=f"p{i}", n_parties=n_parties, use=name, contrasts=contrasts)
        for i in range(n_parties)
    ]
    return {
        label.party: seal(addend, label, center.keys, rng=rng) for label, addend in zip(labels, addends, strict=True)
    }


def keep(center: MessageCenter, run: str, contrasts: str = "", **values: npt.ArrayLike) -> None:
    """Let the center keep each value, as the sum of what three parties sealed."""
    for name, value in values.items():
        context = f"{run} {name} {Rng.system().bytes(8).hex()}"
        envelopes = seal_all(center, name, value, context, contrasts=contrasts)
        center.keep(run, name, context, envelopes, np.shape(value))


def newton(center: MessageCenter, run: str) -> dict[str, npt.NDArray[np.float64]]:
    """Invert the kept curvature and, if that succeeds, open the step."""
    opened = center.compute(run, "invert")
    return {**opened, **center.compute(run, "step")} if opened["residual_ok"] > 0 else opened


def curvature(d: int, condition: float, seed: int = 0) -> npt.NDArray[np.float64]:
    """A symmetric matrix with eigenvalues from 1 down to 1/condition."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    A = Q * np.geomspace(1, 1 / condition, d) @ Q.T
    return np.asarray((A + A.T) / 2, dtype=np.float64)
