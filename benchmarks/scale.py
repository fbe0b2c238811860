"""What many parties need, on paper: figures measured here, and what follows from them.

    python benchmarks/scale.py [--connections 500] [--parties 200] [--numbers 1000]

Measured in this run: what a connection (TLS, keys, permissions) takes of the message server's memory and processor,
what a message to each of them takes, and what a party's addend takes at the party, at a node and on the line, proofs
and signatures included. The tables below are multiplications of these; nothing else enters them.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from checked_sum import SignedCenter, once

from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.server import MessageServer, ServerSettings, running_pid
from tacit.privacy.noise.grid import VectorSum, gaussian_grid

_ROUNDS = 20


@dataclass(frozen=True)
class Measured:
    """For one party: bytes and seconds."""

    memory: float  # of the server, a connection
    connecting: float  # processor seconds of the server, a connection
    delivering: float  # processor seconds of the server, a message
    sealing: float  # processor seconds of the party, a sum
    checking: float  # processor seconds of one node, a sum
    sent: float  # bytes of a party, a sum


async def of_server(n: int, size: int) -> tuple[float, float, float]:
    """Memory and processor time of the server: a connection, and a message to one of them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        coordinator = CoordinatorFolder.make(Path(folder) / "c", ServerSettings(port=port), None)
        assert coordinator.settings is not None
        server = MessageServer(coordinator.path, coordinator.settings)
        server.start()
        process = psutil.Process(running_pid(coordinator.path))
        before, used = process.memory_info().rss, sum(process.cpu_times()[:2])
        connections = [Connection(coordinator.address, coordinator.credential) for _ in range(n)]
        heard = 0

        async def hear(_: str, __: bytes, ___: str) -> None:
            nonlocal heard
            heard += 1

        try:
            for k, connection in enumerate(connections):
                await connection.subscribe(f"tacit.ask.{k}", hear)
                await connection.open()
            memory, connected = process.memory_info().rss, sum(process.cpu_times()[:2])
            message = bytes(size)
            for _ in range(_ROUNDS):
                for k in range(n):
                    await connections[0].publish(f"tacit.ask.{k}", message)
                while heard < n * (_ + 1):
                    await asyncio.sleep(0.005)
            delivered = sum(process.cpu_times()[:2])
        finally:
            for connection in connections:
                await connection.close()
            server.stop()
            coordinator.close()
    return (memory - before) / n, (connected - used) / n, (delivered - connected) / n / _ROUNDS


def of_sums(n_parties: int, numbers: int) -> tuple[float, float, float]:
    """Processor seconds at a party and at one node, and bytes, for each party of a sum."""
    total = VectorSum(dimension=numbers, sensitivity=1.0, value_bound=1.0, norm_bound=1.0, n_parties=n_parties)
    grid = gaussian_grid(total, epsilon=1.0, delta=1e-6)
    values = np.random.default_rng(0).normal(size=(n_parties, numbers))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    center = SignedCenter(n_parties, checks=True)
    once(center, grid, values)
    parties, nodes, n_bytes = once(center, grid, values)
    return parties / n_parties, nodes / 3 / n_parties, n_bytes / n_parties


def table(found: Measured, title: str, connected: int, addends: int) -> None:
    """What one round of so many takes.

    Each connection gets a question. Each addend is three envelopes, to the coordinator and from there to a node each.
    """
    print(f"\n{title}: {connected:,} connections, {addends:,} addends in a round")
    print(f"  message servers, memory          {connected * found.memory / 1e9:9.2f} GB")
    print(f"  message servers, all connect     {connected * found.connecting:9.1f} processor seconds")
    print(f"  message servers, a round         {(connected + 6 * addends) * found.delivering:9.2f} processor seconds")
    print(f"  on the line, a round             {2 * addends * found.sent / 1e9:9.3f} GB")
    print(f"  one node, a round                {addends * found.checking:9.1f} processor seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--parties", type=int, default=200)
    parser.add_argument("--numbers", type=int, default=1000)
    given = parser.parse_args()
    start = time.perf_counter()
    sums = of_sums(given.parties, given.numbers)
    server = asyncio.run(of_server(given.connections, int(sums[2] / 3)))
    found = Measured(*server, *sums)
    print(f"measured with {given.connections} connections and {given.parties} parties of {given.numbers} numbers:")
    print(f"  a connection: {found.memory / 1e3:.0f} kB and {1e3 * found.connecting:.2f} ms of the server")
    print(f"  a message of {sums[2] / 3e3:.0f} kB: {1e6 * found.delivering:.0f} us of the server")
    print(f"  an addend: {1e3 * found.sealing:.1f} ms of its party, {1e3 * found.checking:.2f} ms of each node, "
          f"{found.sent / 1e3:.0f} kB")  # fmt: skip
    table(found, "10,000 parties, each connected", 10_000, 10_000)
    table(found, "1,000,000 devices behind 1,000 gateways that their owners trust", 1_000, 1_000)
    table(found, "1,000,000 devices behind 1,000 gateways that only carry", 1_000, 1_000_000)
    print(f"\nin {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
