"""A center of real processes, started once for all tests of this folder that need one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from tacit.rand import Rng
from tacit.secure.center.center import MessageCenter
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.center.process import ProcessCenter
from tacit.secure.envelope import Label, seal

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


def seal_all(
    center: MessageCenter, name: str, value: npt.ArrayLike, context: str, n_parties: int = N_PARTIES
) -> Mapping[str, list[bytes]]:
    """The envelopes of parties whose addends sum to `value`."""
    array = np.rint(np.asarray(value, dtype=np.float64) * UNIT).astype(np.int64).ravel()
    addends = [array - (n_parties - 1) * (array // n_parties)] + [array // n_parties] * (n_parties - 1)
    rng = Rng.system()
    return {
        f"p{i}": seal(
            addend, Label(context=context, party=f"p{i}", n_parties=n_parties, use=name), center.keys, rng=rng
        )
        for i, addend in enumerate(addends)
    }


def keep(center: MessageCenter, run: str, **values: npt.ArrayLike) -> None:
    """Let the center keep each value, as the sum of what three parties sealed."""
    for name, value in values.items():
        context = f"{run} {name} {Rng.system().bytes(8).hex()}"
        center.keep(run, name, context, seal_all(center, name, value, context), np.shape(value))


def newton(center: MessageCenter, run: str) -> dict[str, npt.NDArray[np.float64]]:
    """Invert the kept curvature and, if that succeeds, open the step."""
    opened = center.compute(run, "invert")
    return {**opened, **center.compute(run, "step")} if opened["residual_ok"] > 0 else opened


def curvature(d: int, condition: float, seed: int = 0) -> npt.NDArray[np.float64]:
    """A symmetric matrix with eigenvalues from 1 down to 1/condition."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    A = Q * np.geomspace(1, 1 / condition, d) @ Q.T
    return np.asarray((A + A.T) / 2, dtype=np.float64)
