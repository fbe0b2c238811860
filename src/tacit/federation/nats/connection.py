"""A connection to the message server that is kept up.

It is made again whenever it is lost, from the start, and every subscription with it. Of several servers of a cluster it
takes the next. Nothing that is published while it is down is kept here: whoever asked asks again, and the answers are
stored where they were made.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections import deque
from collections.abc import Awaitable, Callable
from hashlib import sha256

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import AuthorizationError, Error, NoRespondersError, NoServersError

from tacit.errors import RunError
from tacit.federation.member.address import Address, Credential
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.subject import inbox
from tacit.secure.certificate import tls_context


def _is_worth_noting(record: logging.LogRecord) -> bool:
    """Whether asyncio's remark is one that somebody could act on: this one comes with every end of a TLS stream."""
    return "eof_received() has no effect" not in record.getMessage()


logging.getLogger("asyncio").addFilter(_is_worth_noting)

OnMessage = Callable[[str, bytes, str], Awaitable[None]]  # subject, message, subject to reply to

_CONNECT_SECONDS = 5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_PING_SECONDS = 5  # a connection that is cut without a word is noticed after three of these
_LOOK_SECONDS = 0.5  # the client does not always tell that it is closed, so it is also looked at
_PENDING_BYTES = 256 << 20


class Connection:
    """One connection, kept up until it is closed. All of its methods run on one event loop."""

    def __init__(self, address: Address, credential: Credential, journal: Journal | None = None) -> None:
        self._address = address
        self._credential = credential
        self._journal = journal
        self._tls = tls_context(address.authority)
        # Members begin at different servers; the first byte of a digest spreads them evenly enough.
        self._turn = sha256(credential.name.encode()).digest()[0]
        self._client: Client | None = None
        self._subscribed: dict[str, OnMessage] = {}
        self._refused: deque[str] = deque(maxlen=16)  # what the server said this key may not do
        self._lost = asyncio.Event()
        self._up = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._closing = False  # the client's `connect` may swallow a cancellation
        self.on_up: Callable[[], Awaitable[None]] | None = None  # told of every new connection after the first

    async def open(self, *, seconds: float = 10.0) -> None:
        """Connect; raise if that fails for so long."""
        deadline = asyncio.get_running_loop().time() + seconds
        pause, tried = _FIRST_PAUSE, 0
        while True:
            try:
                await self._connect()
                break
            except Exception as error:  # the client has more kinds of failure than it names
                tried += 1
                hopeless = isinstance(error, ssl.SSLError) and tried >= len(self._address.urls)
                if hopeless or asyncio.get_running_loop().time() + pause > deadline:
                    raise unreachable(self._address.url, error) from error
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        self._keeper = asyncio.create_task(self._keep())

    async def subscribe(self, subject: str, on_message: OnMessage) -> None:
        """Hand every message on `subject` to `on_message`, after every new connection too."""
        self._subscribed[subject] = on_message
        if self._client is not None:
            await self._listen(self._client, subject, on_message)

    async def publish(self, subject: str, message: bytes) -> bool:
        """Send; False if there is no connection now."""
        if self._client is None or not self._up.is_set():
            return False
        try:
            await self._client.publish(subject, message)
        except (OSError, Error):
            return False
        return True

    async def tell(self, subject: str, message: bytes, *, seconds: float = 10.0) -> None:
        """Send, and return when the server has it; a `RunError` if there is no connection for so long."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not await self._is_told(subject, message):  # the connection was just lost, and is being made again
            if asyncio.get_running_loop().time() > deadline:
                raise RunError(f"the message server at {self._address.url} does not take {subject}; try again")
            await asyncio.sleep(_FIRST_PAUSE)

    async def _is_told(self, subject: str, message: bytes) -> bool:
        if not await self.publish(subject, message):
            return False
        try:
            await self.client.flush(timeout=_CONNECT_SECONDS)
        except (OSError, Error, RunError):
            return False
        return True

    async def ask(self, subject: str, message: bytes, *, hear: str, seconds: float) -> bytes:
        """One reply to one message, on a subject that is this member's own; a `RunError` if none comes."""
        replies: asyncio.Queue[bytes] = asyncio.Queue()

        async def take(_: str, reply: bytes, __: str) -> None:
            replies.put_nowait(reply)

        await self.subscribe(hear, take)
        await self.tell(subject, message, seconds=seconds)
        try:
            return await asyncio.wait_for(replies.get(), timeout=seconds)
        except TimeoutError as error:
            raise RunError(
                f"the coordinator does not answer on {subject} within {seconds:g} s: start `tacit coordinator serve`"
            ) from error

    async def flush(self) -> None:
        """Return when the server has everything that was published."""
        if self._client is not None:
            with contextlib.suppress(OSError, Error):
                await self._client.flush(timeout=_CONNECT_SECONDS)

    async def request(self, subject: str, message: bytes, *, seconds: float = 5.0) -> Msg:
        """One reply to one message of the coordinator's, which alone has an inbox; a `RunError` if none comes."""
        if self._client is None:
            raise RunError(f"there is no connection to the message server at {self._address.url}; try again")
        try:
            return await self._client.request(subject, message, timeout=seconds)
        except NoRespondersError as error:
            raise RunError(f"nobody listens on {subject}: start `tacit coordinator serve`") from error
        except (OSError, Error) as error:
            raise RunError(f"no reply on {subject} within {seconds:g} s ({type(error).__name__}); try again") from error

    async def is_refused(self, subject: str) -> bool:
        """Whether the server refuses this key a subscription to `subject`."""
        self._refused.clear()
        try:
            subscription = await self.client.subscribe(subject)
        except (OSError, Error) as error:
            raise unreachable(self._address.url, error) from error
        await self.flush()
        await asyncio.sleep(0.05)  # the refusal comes as a message of its own
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

    async def request_each(self, subject: str, message: bytes, *, seconds: float = 5.0) -> list[bytes]:
        """The replies of all servers to one message of the coordinator's; those that come in time."""
        replies: asyncio.Queue[bytes] = asyncio.Queue()

        async def take(found: Msg) -> None:
            replies.put_nowait(bytes(found.data))

        client = self.client
        heard: list[bytes] = []
        try:
            where = client.new_inbox()
            subscription = await client.subscribe(where, cb=take)
            await client.publish(subject, message, reply=where)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while len(heard) < len(self._address.urls):
                        heard.append(await replies.get())
            await subscription.unsubscribe()
        except (OSError, Error) as error:
            raise RunError(f"no reply on {subject} ({type(error).__name__}); try again") from error
        return heard

    @property
    def _server(self) -> str:
        """The server of this turn."""
        return self._address.urls[self._turn % len(self._address.urls)]

    @property
    def client(self) -> Client:
        """The client of the present connection."""
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
        if client is not None:
            _let_go(client)

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        lost = asyncio.Event()

        async def on_closed() -> None:
            lost.set()

        causes: deque[Exception] = deque(maxlen=4)

        async def on_error(error: Exception) -> None:
            causes.append(error)
            self._note_refusal(error)

        client = Client()
        try:
            await client.connect(
                self._server,
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
            for subject, on_message in self._subscribed.items():
                await self._listen(client, subject, on_message)
            await client.flush(timeout=_CONNECT_SECONDS)
        except BaseException as error:
            _let_go(client)
            self._turn += 1
            if isinstance(error, NoServersError) and causes:  # it says nothing; the cause came before
                raise causes[-1] from error
            raise
        self._client, self._lost = client, lost
        self._up.set()

    async def _listen(self, client: Client, subject: str, on_message: OnMessage) -> None:
        async def deliver(message: Msg) -> None:
            await on_message(message.subject, bytes(message.data), message.reply)

        await client.subscribe(subject, cb=deliver, pending_bytes_limit=_PENDING_BYTES)

    async def _keep(self) -> None:
        """Connect again whenever the connection is lost."""
        while not self._closing:
            await self._until_lost()
            self._up.clear()
            if self._client is not None:
                _let_go(self._client)
            self._note("connection-lost", server=self._server)
            self._turn += 1
            pause = _FIRST_PAUSE
            while not self._up.is_set():
                if self._closing:
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                try:
                    await self._connect()
                except Exception as error:  # whatever it is, this task is the member's only way back
                    self._note("no-connection", why=str(unreachable(self._address.url, error)))
            self._note("connected-again", server=self._server)
            if self.on_up is not None:
                try:
                    await self.on_up()
                except Exception as error:
                    self._note("failed", kind="connected-again", error=type(error).__name__)

    async def _until_lost(self) -> None:
        """Return when the connection is lost.

        The client calls back when it has closed, unless closing fails half-way. With something left to send, to a
        server that is gone, it ends in an error, and nobody is told.
        """
        while self._client is not None and self._client.is_connected:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), _LOOK_SECONDS)
                return

    def _note_refusal(self, error: Exception) -> None:
        """Remember what the server said this key may not do."""
        if "ermissions" in str(error):
            self._refused.append(str(error))
            self._note("not-permitted", why=str(error))

    def _note(self, event: str, **facts: str) -> None:
        if self._journal is not None:
            self._journal.note(event, **facts)


def unreachable(url: str, error: BaseException) -> RunError:
    """The error to raise where the connection to `url` failed with `error`."""
    match error:
        case Error() if isinstance(error, AuthorizationError) or "uthorization" in str(error):
            why = "does not know this key: it was revoked, or the invitation was used or has expired"
            return RunError(f"the message server at {url} {why}; ask the coordinator for a new invitation")
        case ssl.SSLCertVerificationError():
            what = error.verify_message or "not trusted"
            return RunError(
                f"the certificate of the server at {url} is refused ({what}); if it has expired, the coordinator "
                f"renews it with `tacit coordinator renew`; if it is foreign, this is not your federation's server"
            )
        case _:
            what = str(error) or type(error).__name__
            return RunError(
                f"the message server at {url} cannot be reached ({what}); "
                f"is `tacit coordinator serve` running, and is the address right?"
            )


def _let_go(client: Client) -> None:
    """End whatever a client still holds: one that fails while it connects or closes keeps its tasks and its socket."""
    tasks = [client._reading_task, client._ping_interval_task, client._flusher_task]
    tasks += [subscription._wait_for_msgs_task for subscription in client._subs.values()]
    for task in tasks:
        if task is not None and task is not asyncio.current_task():
            task.cancel()
    writer = getattr(client._transport, "_io_writer", None)
    if writer is not None:
        writer.transport.abort()  # nobody is left at its other end to take leave of; that would leave it open for long
