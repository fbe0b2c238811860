"""A center within this process: the default of a simulation."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.secure.center.center import Center, MessageCenter
from tacit.secure.center.node import NodeServer
from tacit.secure.share import N_NODES


class EmbeddedCenter(MessageCenter):
    """Three nodes in this process: the default of a simulation, and the same code that three machines run."""

    def __init__(self) -> None:
        self._nodes = tuple(NodeServer(index) for index in range(N_NODES))

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The nodes' public keys, to which parties seal."""
        return tuple(node.public_key for node in self._nodes)

    def computing(self) -> Center:
        """Three processes on this machine, started on first use and shared by all simulations of this process."""
        from tacit.secure.center.process import shared_center

        return shared_center()

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        """Give one message to each node, and return their answers."""
        return [node.handle(request) for node, request in zip(self._nodes, requests, strict=True)]
