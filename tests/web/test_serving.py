"""Sites that listen: with a daemon, by TLS, and live."""

from __future__ import annotations

import asyncio
import ssl
import threading
from pathlib import Path

import httpx
import pytest

from tacit.errors import SettingError
from tacit.web.serving import CERTIFICATE, KEY, Listen, SiteServer, together
from tests.web.conftest import Desk, LiveDesk, make_desk


@pytest.mark.parametrize("text", ["", "8020", ":8020", "localhost:", "localhost:x", "localhost:99999", "localhost:-1"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(SettingError, match="must be HOST:PORT"):
        Listen.parse(text)


@pytest.mark.parametrize(
    ("text", "is_local"),
    [("127.0.0.1:1", True), ("[::1]:1", True), ("localhost:1", True), ("127.9.9.9:1", True), ("0.0.0.0:1", False),
     ("[::]:1", False), ("192.0.2.1:1", False), ("localhost.example.org:1", False)],
)  # fmt: skip
def test_only_this_machine_is_reached_without_tls(text: str, is_local: bool) -> None:
    assert Listen.parse(text).is_local is is_local


def test_a_port_that_is_taken_is_one_clear_line(tmp_path: Path) -> None:
    first = SiteServer(Listen(), tmp_path)
    first._socket.listen()
    with pytest.raises(SettingError, match="cannot listen"):
        SiteServer(Listen(port=first.port), tmp_path)
    first.close()


def test_elsewhere_a_site_speaks_tls_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    server = SiteServer(Listen(host="0.0.0.0"), tmp_path)
    assert server.is_tls
    assert (tmp_path / KEY).stat().st_mode & 0o077 == 0
    desk = make_desk(tls=True, port=server.port)
    trusting = ssl.create_default_context(cafile=str(tmp_path / CERTIFICATE))
    trusting.check_hostname = False  # it is made for 0.0.0.0

    async def main() -> httpx.Response:
        stop = asyncio.Event()

        async def visit() -> httpx.Response:
            async with httpx.AsyncClient(verify=trusting) as client:
                answer = await client.get(f"https://127.0.0.1:{server.port}/log-in")
            stop.set()
            return answer

        answer, _ = await asyncio.gather(visit(), server.serve(desk.app, stop, desk.site.live.close))
        return answer

    answer = asyncio.run(asyncio.wait_for(main(), 120))
    assert answer.status_code == 200
    assert "strict-transport-security" in answer.headers
    (tmp_path / KEY).unlink()
    with pytest.raises(SettingError, match="missing beside its pair"):
        SiteServer(Listen(host="0.0.0.0"), tmp_path)
    (tmp_path / KEY).write_text("no key")
    with pytest.raises(SettingError, match="no certificate and its key"):
        SiteServer(Listen(host="0.0.0.0"), tmp_path)


def test_the_parts_of_a_daemon_stop_together_and_the_failure_is_told() -> None:
    async def main() -> None:
        stop = asyncio.Event()

        async def waits() -> None:
            await stop.wait()

        async def fails() -> None:
            raise SettingError("the other part")

        await together(stop, waits(), fails())

    with pytest.raises(SettingError, match="the other part"):
        asyncio.run(asyncio.wait_for(main(), 60))


def test_a_stream_of_events_gets_what_is_published_and_ends_with_the_site(desk: Desk, tmp_path: Path) -> None:
    from fastapi import APIRouter

    from tacit.web.site import make_app

    router = APIRouter()

    @router.get("/events")
    async def events() -> object:
        return desk.site.live.watch(["a"])

    server = SiteServer(Listen(), tmp_path)
    desk = make_desk(port=server.port)
    app = make_app(desk.site, [router])
    told: list[str] = []

    async def main() -> None:
        stop = asyncio.Event()

        async def watch() -> None:
            async with (
                httpx.AsyncClient(timeout=None) as client,
                client.stream("GET", f"{server.url}/events") as answer,
            ):
                assert answer.headers["content-type"].startswith("text/event-stream")
                assert "content-security-policy" in answer.headers
                async for line in answer.aiter_lines():
                    told.append(line)
                    if line == "data: <p>2</p>":
                        stop.set()

        async def publish() -> None:
            while not desk.site.live.n_watchers:
                await asyncio.sleep(0.01)
            desk.site.live.publish("a", "step", "<p>1</p>")
            await asyncio.sleep(0)
            thread = threading.Thread(target=desk.site.live.publish, args=("a", "step", "<p>2</p>"))
            thread.start()

        await asyncio.gather(watch(), publish(), server.serve(app, stop, desk.site.live.close))

    asyncio.run(asyncio.wait_for(main(), 120))
    assert "event: step" in told
    assert "data: <p>2</p>" in told


def test_a_live_site_answers(live_desk: LiveDesk) -> None:
    with httpx.Client() as client:
        assert client.get(f"{live_desk.url}/").status_code == 200
        assert client.get(f"{live_desk.url}/", headers={"host": "evil.example"}).status_code == 400
