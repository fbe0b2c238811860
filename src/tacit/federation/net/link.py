"""The line to the message server: one connection that is kept up, and what travels over it.

The connection is made again whenever it is lost, from the start, and every subscription with it. Nothing that is
published while it is down is kept here: whoever asked asks again, and the answers are stored where they were made.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import AuthorizationError, Error, NoRespondersError, NoServersError

from tacit.errors import RunError, SettingError
from tacit.federation.net.certificate import tls_context
from tacit.federation.net.journal import Journal
from tacit.federation.net.subject import Stream, inbox, stored


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether asyncio's remark is one that somebody could act on: this one comes with every end of a TLS stream."""
    return "eof_received() has no effect" not in record.getMessage()


logging.getLogger("asyncio").addFilter(_is_worth_a_line)

Handler = Callable[[str, bytes, str], Awaitable[None]]  # subject, message, subject to reply to

_CONNECT_SECONDS = 5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_PING_SECONDS = 5  # a line that is cut without a word is noticed after three of these
_LOOK_SECONDS = 0.5  # the client does not always tell that it is closed, so it is also looked at
_PENDING_BYTES = 256 << 20


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the message server is, and whose certificate it must show (in PEM)."""

    url: str
    authority: str

    def __post_init__(self) -> None:
        if not self.url.startswith("tls://"):
            raise SettingError(f"the server's address {self.url!r} must start with tls://; nothing travels in the open")


@dataclass(frozen=True, kw_only=True)
class Credential:
    """Who opens the connection: the name of its inbox, and the secret of its nkey."""

    name: str
    nkey_seed: str

    def __repr__(self) -> str:
        return f"Credential({self.name!r})"


class Link:
    """One connection, kept up until it is closed. All of its methods run on one event loop."""

    def __init__(self, address: Address, credential: Credential, journal: Journal | None = None) -> None:
        self._address = address
        self._credential = credential
        self._journal = journal
        self._tls = tls_context(address.authority)
        self._client: Client | None = None
        self._handlers: dict[str, Handler] = {}
        self._refused: deque[str] = deque(maxlen=16)  # what the server said this key may not do
        self._lost = asyncio.Event()
        self._up = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._closing = False  # the client's `connect` may swallow a cancellation
        self.on_up: Callable[[], Awaitable[None]] | None = None  # told of every new connection after the first

    async def open(self, *, seconds: float = 10.0) -> None:
        """Connect; raise if that fails for so long."""
        deadline = asyncio.get_running_loop().time() + seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._connect()
                break
            except (OSError, Error) as error:
                if isinstance(error, ssl.SSLError) or asyncio.get_running_loop().time() + pause > deadline:
                    raise self._unreachable(error) from error
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        self._keeper = asyncio.create_task(self._keep())

    @property
    def is_up(self) -> bool:
        """Whether there is a connection now."""
        return self._up.is_set()

    async def wait_up(self) -> None:
        """Return when there is a connection."""
        await self._up.wait()

    async def subscribe(self, subject: str, handler: Handler) -> None:
        """Hand every message on `subject` to `handler`, after every new connection too."""
        self._handlers[subject] = handler
        if self._client is not None:
            await self._listen(self._client, subject, handler)

    async def publish(self, subject: str, message: bytes) -> bool:
        """Send; False if there is no connection now."""
        if self._client is None or not self._up.is_set():
            return False
        try:
            await self._client.publish(subject, message)
        except (OSError, Error):
            return False
        return True

    async def flush(self) -> None:
        """Return when the server has everything that was published."""
        if self._client is not None:
            with contextlib.suppress(OSError, Error):
                await self._client.flush(timeout=_CONNECT_SECONDS)

    async def request(self, subject: str, message: bytes, *, seconds: float = 5.0) -> Msg:
        """One reply to one message; a `RunError` if none comes."""
        if self._client is None:
            raise RunError(f"there is no connection to the message server at {self._address.url}; try again")
        try:
            return await self._client.request(subject, message, timeout=seconds)
        except NoRespondersError as error:
            raise RunError(f"nobody listens on {subject}: start `tacit coordinator serve`") from error
        except (OSError, Error) as error:
            raise RunError(f"no reply on {subject} within {seconds:g} s ({type(error).__name__}); try again") from error

    async def last(self, stream: Stream, subject: str) -> bytes | None:
        """The last message on `subject` that the server has kept."""
        try:
            message = await self.request(stored(stream, subject), b"")
        except RunError:
            return None
        return None if (message.headers or {}).get("Status") else bytes(message.data)

    async def all_last(self, stream: Stream) -> list[bytes]:
        """Every message of a small stream, oldest first."""
        found: list[bytes] = []
        number = 1
        while True:
            form = json.dumps({"seq": number, "next_by_subj": stream.subjects}).encode()
            try:
                message = await self.request(stored(stream), form)
            except RunError:
                return found
            headers = message.headers or {}
            if headers.get("Status"):
                return found
            found.append(bytes(message.data))
            number = int(headers["Nats-Sequence"]) + 1

    async def is_refused(self, subject: str) -> bool:
        """Whether the server refuses this key a subscription to `subject`."""
        self._refused.clear()
        subscription = await self.client.subscribe(subject)
        await self.flush()
        await asyncio.sleep(0.05)  # the refusal comes as a line of its own
        with contextlib.suppress(OSError, Error):
            await subscription.unsubscribe()
        return any(subject.lower() in told.lower() for told in self._refused)  # the client changes the case

    def certificate_days(self) -> float | None:
        """How many days the server's certificate is still valid."""
        transport = self.client._transport
        writer = getattr(transport, "_io_writer", None)
        shown = writer.get_extra_info("peercert") if writer is not None else None
        if not shown or "notAfter" not in shown:
            return None
        return (ssl.cert_time_to_seconds(str(shown["notAfter"])) - time.time()) / 86400

    @property
    def client(self) -> Client:
        """The client of the present connection, for what only the coordinator does (streams)."""
        if self._client is None:
            raise RunError(f"there is no connection to the message server at {self._address.url}; try again")
        return self._client

    async def close(self) -> None:
        """Send what is pending and close for good."""
        self._closing = True
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        self._up.clear()
        client, self._client = self._client, None
        if client is not None and not client.is_closed:
            with contextlib.suppress(OSError, Error):
                await client.flush(timeout=1)
            with contextlib.suppress(OSError, Error):
                await client.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        lost = asyncio.Event()

        async def on_closed() -> None:
            lost.set()

        causes: deque[Exception] = deque(maxlen=4)

        async def on_error(error: Exception) -> None:
            causes.append(error)
            if "ermissions" in str(error):
                self._refused.append(str(error))
                self._note("not-permitted", why=str(error))

        try:
            client = await nats.connect(
                self._address.url,
                name=self._credential.name,
                tls=self._tls,
                nkeys_seed_str=self._credential.nkey_seed,
                inbox_prefix=inbox(self._credential.name),
                allow_reconnect=False,  # `_keep` does it, with what must be done again
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=_CONNECT_SECONDS,
                ping_interval=_PING_SECONDS,
                max_outstanding_pings=2,
                pending_size=_PENDING_BYTES,
                closed_cb=on_closed,
                error_cb=on_error,
            )
        except NoServersError as error:  # it says nothing; the cause came before
            raise (causes[-1] if causes else error) from error
        try:
            for subject, handler in self._handlers.items():
                await self._listen(client, subject, handler)
            await client.flush(timeout=_CONNECT_SECONDS)
        except (OSError, Error):
            with contextlib.suppress(OSError, Error):
                await client.close()
            raise
        self._client, self._lost = client, lost
        self._up.set()

    async def _listen(self, client: Client, subject: str, handler: Handler) -> None:
        async def deliver(message: Msg) -> None:
            await handler(message.subject, bytes(message.data), message.reply)

        await client.subscribe(subject, cb=deliver, pending_bytes_limit=_PENDING_BYTES)

    async def _keep(self) -> None:
        """Connect again whenever the connection is lost."""
        while not self._closing:
            await self._until_lost()
            self._up.clear()
            self._note("connection-lost")
            pause = _FIRST_PAUSE
            while not self._up.is_set():
                if self._closing:
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                try:
                    await self._connect()
                except (OSError, Error) as error:
                    self._note("no-connection", why=str(self._unreachable(error)))
            self._note("connected-again")
            if self.on_up is not None:
                await self.on_up()

    async def _until_lost(self) -> None:
        """Return when the connection is lost.

        The client calls back when it has closed, unless closing fails half-way: with something left to send, to a
        server that is gone, it ends in an error, and nobody is told.
        """
        while self._client is not None and self._client.is_connected:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), _LOOK_SECONDS)
                return

    def _note(self, event: str, **facts: str) -> None:
        if self._journal is not None:
            self._journal.note(event, **facts)

    def _unreachable(self, error: BaseException) -> RunError:
        where = self._address.url
        match error:
            case Error() if isinstance(error, AuthorizationError) or "uthorization" in str(error):
                why = "does not know this key: it was revoked, or the invitation was used or has expired"
                return RunError(f"the message server at {where} {why}; ask the coordinator for a new invitation")
            case ssl.SSLCertVerificationError():
                what = error.verify_message or "not trusted"
                return RunError(
                    f"the certificate of the server at {where} is refused ({what}); if it has expired, the coordinator "
                    f"renews it with `tacit coordinator renew`; if it is foreign, this is not your federation's server"
                )
            case _:
                what = type(error).__name__ if not str(error) else str(error)
                return RunError(
                    f"the message server at {where} cannot be reached ({what}); "
                    f"is `tacit coordinator serve` running, and is the address right?"
                )
