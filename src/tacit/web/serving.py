"""Run a site within a daemon: on its event loop, until the daemon stops.

A site listens on this machine alone, in plain HTTP. Anywhere else it speaks TLS, with the certificate `web.pem` and
the key `web.key` of the daemon's folder; where there are none it makes a pair that no authority signed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from tacit.data.scheduler import is_loopback
from tacit.errors import SettingError
from tacit.secure.certificate import make_own

CERTIFICATE, KEY = "web.pem", "web.key"
_STOP_SECONDS = 5


@dataclass(frozen=True, kw_only=True)
class Listen:
    """Where a site listens.

    Attributes:
        host: an address or name of this machine.
        port: the port; 0 takes a free one.
    """

    host: str = "127.0.0.1"
    port: int = 0

    @staticmethod
    def parse(text: str) -> Listen:
        """HOST:PORT, as the command line has it."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (colon and host and port.isascii() and port.isdecimal() and int(port[:6]) <= 65535):
            raise SettingError(f"--web-listen {text!r} must be HOST:PORT, such as 127.0.0.1:8020")
        return Listen(host=host, port=int(port))

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def host_names(listen: Listen, names: Sequence[str]) -> tuple[str, ...]:
    """The host names under which browsers reach a site that listens there; `names` are the operator's own."""
    if listen.is_local:
        return ("127.0.0.1", "localhost", "[::1]", *names)
    if listen.host in ("0.0.0.0", "::") and not names:
        raise SettingError(
            f"--web-listen {listen.host}:{listen.port} is every address of this machine; name it with --web-host NAME"
        )
    return (f"[{listen.host}]" if ":" in listen.host else listen.host, *names)


class SiteServer:
    """A site's socket, opened at once so that its port is known, and its server."""

    def __init__(self, listen: Listen, folder: Path) -> None:
        """Open the socket, and find or make the certificate where one is needed."""
        self.is_tls = not listen.is_local
        self._folder = folder
        if self.is_tls:
            _certify(folder, listen.host)
        self._socket = _open_socket(listen)
        self.port: int = self._socket.getsockname()[1]
        self.host = listen.host

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}"

    async def serve(self, app: ASGIApp, stop: asyncio.Event, before_end: Callable[[], None] | None = None) -> None:
        """Serve until `stop` is set; `before_end` is called first, to end what would otherwise stay open."""
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=_STOP_SECONDS,
            timeout_keep_alive=30,
            ssl_certfile=str(self._folder / CERTIFICATE) if self.is_tls else None,
            ssl_keyfile=str(self._folder / KEY) if self.is_tls else None,
        )
        server = _Server(config)
        running = asyncio.create_task(server.serve(sockets=[self._socket]))
        waiting = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if before_end is not None:
                before_end()
            server.should_exit = True
            await running

    def close(self) -> None:
        """Close the socket of a server that never served."""
        self._socket.close()


class _Server(uvicorn.Server):
    """The daemon takes the signals, and stops its site itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def together(stop: asyncio.Event, *parts: Coroutine[Any, Any, None]) -> None:
    """Run the parts of a daemon; when one of them ends or fails, all stop, and the first failure is raised."""
    tasks: list[Awaitable[None]] = [asyncio.create_task(_then_stop(part, stop)) for part in parts]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _then_stop(part: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    try:
        await part
    finally:
        stop.set()


def _certify(folder: Path, host: str) -> None:
    """Make a certificate where there is none; refuse one that cannot be used."""
    certificate, key = folder / CERTIFICATE, folder / KEY
    if certificate.exists() != key.exists():
        missing = key if certificate.exists() else certificate
        raise SettingError(f"{missing} is missing beside its pair; put both there, or remove the other one")
    if not certificate.exists():
        make_own(folder, "web", host)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise SettingError(f"{certificate} and {key} are no certificate and its key ({error}); replace them") from error


def _open_socket(listen: Listen) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)[0]
        # With the protocol named, asyncio turns off Nagle: a header does not wait 40 ms for its body.
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
        except OSError:
            opened.close()
            raise
    except OSError as error:
        raise SettingError(
            f"the site cannot listen on {listen.host}:{listen.port} ({error.strerror}); name another --web-listen"
        ) from error
    return opened
