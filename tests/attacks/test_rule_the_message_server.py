"""A party wants to rule the message server: make it act, speak in others' names, hear them, or stop serving them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tacit.federation.member.address import Address, Credential
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.folder import MemberFolder
from tacit.federation.nats.connection import _let_go
from tacit.federation.nats.server import ServerSettings
from tacit.secure.certificate import tls_context

from ..daemon.conftest import Loopback, free_port, wait_for

VICTIM = "tacit.ask.south"  # where only the coordinator may speak, and only south may hear
STREAMS = ("TACIT_ASK", "TACIT_ANSWER", "TACIT_STUDY", "TACIT_EVENT", "TACIT_MEMBERS")
APIS = (
    *(f"$JS.API.{what}.{stream}" for stream in STREAMS for what in (
        "STREAM.DELETE", "STREAM.PURGE", "STREAM.UPDATE", "STREAM.CREATE", "STREAM.INFO", "STREAM.MSG.GET",
        "STREAM.MSG.DELETE", "DIRECT.GET", "CONSUMER.CREATE", "CONSUMER.LIST",
    )),
    "$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.ACCOUNT.PURGE.$G", "$JS.ACK.x",
    "$JS.API.DIRECT.GET.TACIT_ASK.tacit.ask.north", "$JS.API.DIRECT.GET.TACIT_MEMBERS.tacit.members",
    "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.ACCOUNT.PING.STATZ", "$SYS.REQ.SERVER.PING", "$SYS.REQ.USER.INFO",
    "_INBOX.coordinator.x", "_INBOX.south.x", VICTIM, "tacit.call.south", "tacit.members", "tacit.study.x",
    "tacit.kept.south.members", "tacit.time.south", "tacit.welcome.x", "tacit.answer.south.x", "tacit.reply.south.x",
    "tacit.event.south", "tacit.fetch.south", "tacit.clock.south", "tacit.join.x", "tacit.clock",
)  # fmt: skip

DEAF = (
    ">", "*", "_INBOX.>", "_INBOX.coordinator.>", "_INBOX.north.>", "tacit.>", "tacit.ask.*", VICTIM, "tacit.answer.>",
    "tacit.reply.>", "tacit.event.*", "tacit.kept.*.*", "tacit.time.*", "$SYS.>", "$JS.>",
)  # fmt: skip


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """A coordinator with its server, and two parties that joined: their credentials are in the attacker's hands."""
    made = Loopback(tmp_path_factory.mktemp("ruled"))
    CoordinatorFolder.make(made.coordinator, ServerSettings(port=free_port()), None).close()
    try:
        made.start("coordinator", "coordinator")
        for name in ("north", "south", "flood", "crowd"):
            made.invite(name, without_center=True)
        yield made
    finally:
        made.close()


def of_party(root: Path) -> tuple[Address, Credential]:
    folder = MemberFolder.load(root, "party")
    return folder.pinned.address, folder.credential


@asynccontextmanager
async def connected(address: Address, credential: Credential) -> AsyncIterator[tuple[Client, list[str]]]:
    """A client of the attacker's own, and what the server refused it."""
    refused: list[str] = []
    client = Client()

    async def on_error(error: Exception) -> None:
        refused.append(str(error))

    try:
        await client.connect(
            address.url, tls=tls_context(address.authority), nkeys_seed_str=credential.nkey_seed, error_cb=on_error,
            inbox_prefix=f"_INBOX.{credential.name}", allow_reconnect=False, max_reconnect_attempts=1,
            connect_timeout=60,
        )  # fmt: skip
        yield client, refused
    finally:
        if client.is_connected:
            await client.close()
        _let_go(client)  # one that was shut out may still be taking leave


@asynccontextmanager
async def overheard(federation: Loopback) -> AsyncIterator[dict[str, list[bytes]]]:
    """Every message of the federation, by its subject, as somebody who has the coordinator's key sees it."""
    heard: dict[str, list[bytes]] = {}
    coordinator = CoordinatorFolder(federation.coordinator)

    async def hear(message: Msg) -> None:
        heard.setdefault(message.subject, []).append(message.data)

    async with connected(coordinator.address, coordinator.credential) as (client, _):
        await client.subscribe("tacit.>", cb=hear)
        await client.flush(timeout=60)
        yield heard
    coordinator.close()


async def check_refused(client: Client, what: str, subjects: Sequence[str], refused: Sequence[str]) -> None:
    """The server refused every one of them, as it says in messages of its own."""
    await client.flush(timeout=60)
    missing = list(subjects)
    for _ in range(300):
        missing = [where for where in subjects if not any(f'{what} to "{where}"'.lower() in t.lower() for t in refused)]
        if not missing:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"the server lets a party do this: {what} to {', '.join(missing)}")


async def tell_time(client: Client, name: str) -> bytes:
    """What the coordinator's daemon says to an honest member that asks for the time."""
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: Msg) -> None:
        heard.put_nowait(message.data)

    subscription = await client.subscribe(f"tacit.time.{name}", cb=hear)
    try:
        for _ in range(300):
            await client.publish(f"tacit.clock.{name}", b"")
            try:
                return await asyncio.wait_for(heard.get(), 1.0)
            except TimeoutError:
                continue
        raise AssertionError(f"the coordinator's daemon does not serve {name} any more")
    finally:
        await subscription.unsubscribe()


def test_a_party_reaches_no_api_of_the_server_and_nobody_elses_subject(federation: Loopback) -> None:
    async def attack() -> None:
        async with connected(*of_party(federation.folder("north"))) as (client, refused):
            for where in APIS:
                # A bad request for a message, whose (empty) complaint would delete a stream.
                await client.publish(where, b"{", reply="$JS.API.STREAM.DELETE.TACIT_STUDY")
            await check_refused(client, "publish", APIS, refused)

    asyncio.run(attack())


def test_a_party_hears_nothing_that_is_not_its_own(federation: Loopback) -> None:
    async def attack() -> None:
        async with connected(*of_party(federation.folder("north"))) as (client, refused):
            for where in DEAF:
                await client.subscribe(where)
            await check_refused(client, "subscription", DEAF, refused)

    asyncio.run(attack())


def test_nobody_publishes_where_a_partys_message_says(federation: Loopback) -> None:
    """Neither the server (a direct get, an acknowledgement, a trace) nor the coordinator (the time, a welcome)."""

    async def attack() -> None:
        address, credential = of_party(federation.folder("north"))
        async with overheard(federation) as heard, connected(address, credential) as (client, _):
            for where in (
                "tacit.answer.north.x", "tacit.reply.north.x", "tacit.event.north", "tacit.fetch.north",
                "tacit.clock.north", "tacit.clock", "$JS.API.DIRECT.GET.TACIT_STUDY",
            ):  # fmt: skip
                for message in (b"north", b"{", b""):
                    await client.publish(where, message, reply=VICTIM)
                await client.publish(where, b"x", reply=VICTIM, headers={"Nats-Trace-Dest": VICTIM})
            await client.flush(timeout=60)
            assert await tell_time(client, "north")  # all of the above has been served, or never will be
        assert heard["tacit.event.north"]  # the spy does hear
        assert VICTIM not in heard

    asyncio.run(attack())


def test_whoever_floods_is_shut_out_and_the_others_are_served(federation: Loopback) -> None:
    async def attack() -> None:
        async with (
            connected(*of_party(federation.folder("flood"))) as (flooding, _),
            connected(*of_party(federation.folder("south"))) as (honest, _),
        ):
            volley = (
                b"".join(b"PUB tacit.%b.flood%b 1\r\nx\r\n" % w for w in ((b"event", b""), (b"reply", b".x"))) * 2000
            )
            for _ in range(3000):
                if not flooding.is_connected:
                    break
                await flooding._send_command(volley)
                await flooding._flush_pending()
                await asyncio.sleep(0.02)
            assert not flooding.is_connected, "the server takes whatever a party sends"
            assert await tell_time(honest, "south")
        with pytest.raises(Exception, match=r"(?i)authorization|no servers|permissions"):
            async with connected(*of_party(federation.folder("flood"))):
                pass

    asyncio.run(attack())
    wait_for(lambda: '"shut-out", "member": "flood"' in federation.journal("coordinator"), "the coordinator's note")


def test_a_party_that_opens_connections_without_end_is_shut_out(federation: Loopback) -> None:
    async def attack() -> None:
        address, credential = of_party(federation.folder("crowd"))
        async with AsyncExitStack() as held:
            opened = [(await held.enter_async_context(connected(address, credential)))[0] for _ in range(12)]
            for _ in range(3000):
                if not any(client.is_connected for client in opened):
                    return
                await asyncio.sleep(0.1)
            raise AssertionError("a party may open as many connections as it likes")

    asyncio.run(attack())


def test_subscriptions_without_end_end_the_connection(federation: Loopback) -> None:
    async def attack() -> None:
        async with connected(*of_party(federation.folder("north"))) as (client, _):
            for _ in range(100):
                if client.is_connected:
                    await client.subscribe("tacit.ask.north")
            for _ in range(300):
                if not client.is_connected:
                    break
                await asyncio.sleep(0.1)
            assert not client.is_connected
            assert "maximum subscriptions exceeded" in (federation.coordinator / "nats.log").read_text()

    asyncio.run(attack())
