"""The tunnel between center nodes: the only way into a node's engine, for exactly the other two nodes.

The engine itself takes plain text from anybody and believes the rank that a message names; its library has no option
against either. So it listens on a socket in a folder of its own, which only the node's account can enter. In the same
folder the tunnel listens in the place of each other node:

    engine of node i -> {j}.sock at i -> TLS 1.3 -> port of node j -> {j}.sock at j, the engine of node j

Guarantees:
    1. What enters an engine from outside came over TLS from a peer that showed exactly the certificate on that node's
       card, which the node signed. Plain text, no certificate or another one gets no further than the handshake.
    2. It is a message of the engine's link that names that peer's rank as its sender (`frame.request_of`).
    3. What this node's engine sends to peer j goes to whoever shows exactly the certificate on j's card.

Whoever breaks 2 is cut off, and nothing of that frame reaches the engine. Accounts that may enter the folder (the
node's own and the machine's administrator) are believed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tacit.errors import CenterError
from tacit.secure.center.engine import socket_name
from tacit.secure.center.frame import HEADER_BYTES, Check, request_of, response, rest_of

_HANDSHAKE_SECONDS = 10.0
_BUFFER = 4 << 20  # bytes read ahead of who takes them

_MOST_LINES = 200
_lines = count()

_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, kw_only=True)
class TunnelEnd:
    """One node's end: where it listens (`host:port`), and the certificate that it shows (PEM)."""

    address: str
    certificate: str

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The address in two parts."""
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdigit():
            raise CenterError(f"a node cannot be reached at {self.address!r}: that is not of the form HOST:PORT")
        return host, int(port)

    @property
    def shown(self) -> bytes:
        """The certificate as it is shown in a handshake."""
        try:
            return ssl.PEM_cert_to_DER_cert(self.certificate)
        except ValueError as error:
            raise CenterError("a node's card holds no certificate; let the node join again") from error


class Tunnel:
    """One node's side, in a thread of its own; it lasts as long as the process, or until `close`."""

    def __init__(self, rank: int, ends: Sequence[TunnelEnd], *, certificate: Path, key: Path) -> None:
        """Listen, for the peers and for the own engine; its sockets are in the working folder (`enter_folder`).

        Args:
            rank: this node's place among the nodes.
            ends: all nodes' ends, in order.
            certificate: a file with this node's certificate.
            key: a file with its private key.

        Raises:
            CenterError: if this node's address cannot be listened on, or a card holds no certificate.
        """
        self._rank = rank
        self._ends = dict(enumerate(ends))
        self._peers = {end.shown: peer for peer, end in self._ends.items() if peer != rank}
        self._own = certificate, key
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tunnel", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        except OSError as error:
            self.close()
            raise CenterError(f"node {rank} cannot listen on {ends[rank].address} ({error.strerror})") from error

    def close(self) -> None:
        """Stop listening, and cut whatever is under way."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _listen(self) -> None:
        host, port = self._ends[self._rank].host_and_port
        await asyncio.start_server(
            self._enter, host, port, ssl=self._server_context(), ssl_handshake_timeout=_HANDSHAKE_SECONDS, limit=_BUFFER
        )
        for peer in self._peers.values():
            await asyncio.start_unix_server(self._leave_for(peer), socket_name(peer), limit=_BUFFER)

    async def _end(self) -> None:
        for task in [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward from a peer, whom its certificate names, to the own engine."""
        peer = self._peers.get(_shown_by(writer) or b"")
        if peer is None:  # the handshake has refused it before
            await _hang_up(writer)
            return
        try:
            inner = await asyncio.open_unix_connection(socket_name(self._rank), limit=_BUFFER)
        except OSError:  # the engine is not there yet; the peer tries again
            await _hang_up(writer)
            return
        await _forward((reader, writer), inner, request_of(peer))

    def _leave_for(self, peer: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        end = self._ends[peer]
        host, port = end.host_and_port
        context = self._client_context(end)

        async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Forward from the own engine to the peer, who must show the certificate on its card."""
            try:
                outer = await asyncio.open_connection(
                    host, port, ssl=context, ssl_handshake_timeout=_HANDSHAKE_SECONDS, limit=_BUFFER
                )
            except (OSError, ssl.SSLError):  # the peer is not there yet, or somebody else is; the engine tries again
                await _hang_up(writer)
                return
            if _shown_by(outer[1]) != end.shown:
                await _hang_up(outer[1])
                await _hang_up(writer)
                return
            await _forward((reader, writer), outer, request_of(self._rank))

        return leave

    def _server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._trust(context, [end for peer, end in self._ends.items() if peer != self._rank])
        return context

    def _client_context(self, end: TunnelEnd) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # the very certificate is compared, whatever name it has
        self._trust(context, [end])
        return context

    def _trust(self, context: ssl.SSLContext, ends: Sequence[TunnelEnd]) -> None:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(*self._own)
        context.load_verify_locations(cadata="".join(end.certificate for end in ends))


def _shown_by(writer: asyncio.StreamWriter) -> bytes | None:
    secured: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    return None if secured is None else secured.getpeercert(binary_form=True)


async def _forward(caller: _Stream, called: _Stream, check: Check) -> None:
    """Requests one way and responses the other, until one side hangs up or says something else."""
    ways = [
        asyncio.ensure_future(_pass_on(caller[0], called[1], check)),
        asyncio.ensure_future(_pass_on(called[0], caller[1], response)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for _, writer in (caller, called):
            await _hang_up(writer)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, check: Check) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, OSError, ssl.SSLError):
        try:
            while True:
                header = await reader.readexactly(HEADER_BYTES)
                frame = header + await reader.readexactly(rest_of(header))
                check(frame)
                writer.write(frame)
                await writer.drain()
        except CenterError as error:
            _say(f"cut off: {error}")


def _say(text: str) -> None:
    """Write a line to the engine's own log; not without end, since others bring it about."""
    if next(_lines) < _MOST_LINES:
        print(text, flush=True)


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), 1.0)
