"""What the nodes begin together: nothing runs at one node that not all of them are about to run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tacit.errors import CenterError, TacitError
from tacit.secure.center.engine import SecureEngine
from tacit.secure.share import Shared

T = TypeVar("T")


class EngineFailed(CenterError):
    """The engine stopped in the middle of a computation."""


class OthersRefused(CenterError):
    """This node would have gone on, but not all nodes would."""


def together(
    engine: SecureEngine, index: int, prepare: Callable[[SecureEngine], tuple[T, str, Sequence[Shared]]]
) -> tuple[SecureEngine, T]:
    """Prepare something that all nodes do at the same time, and go on only if all of them are about to.

    Args:
        engine: this node's side of the engine.
        index: the node's place among the nodes.
        prepare: gives what is prepared, a name for it that is the same at every node, and the shares that it reads.

    Raises:
        TacitError: as `prepare`; the other nodes, who would wait, are told first.
        OthersRefused: if another node is not about to do the same.
        EngineFailed: if the others cannot be reached, or something came in their name that they did not sign.
    """
    try:
        prepared, what, shares = prepare(engine)
    except TacitError:
        with _reaching(index):
            engine.refuse()
        raise
    except Exception as error:
        raise EngineFailed(f"node {index} cannot prepare: {type(error).__name__}") from error
    with _reaching(index):
        agreed = engine.agree(what, shares)
    if not agreed:
        raise OthersRefused(
            "nothing was computed: a party's shares do not fit each other, a node refused, or the nodes were asked "
            "different things"
        )
    return engine, prepared


@contextlib.contextmanager
def _reaching(index: int) -> Iterator[None]:
    """Whatever goes wrong between nodes leaves them out of step."""
    try:
        yield
    except TacitError as error:
        raise EngineFailed(f"node {index}: {error}") from error
    except Exception as error:
        raise EngineFailed(f"node {index} cannot reach the others: {type(error).__name__}") from error


@contextlib.contextmanager
def failing(what: str) -> Iterator[None]:
    """Whatever goes wrong once the nodes have begun leaves them out of step; its text might quote a share."""
    try:
        yield
    except Exception as error:
        raise EngineFailed(f"{what}: {type(error).__name__}") from error
