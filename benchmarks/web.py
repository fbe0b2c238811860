"""How fast the coordinator's first page comes, and whether 200 watchers of a study stay live.

python benchmarks/web.py [--studies 200] [--watchers 200] [--events 100] [--repeat 200]

The site runs in a process of its own. Times are those of the catalogue with that many studies, over one connection that
is open already and over a new one for each page, and of the style sheet from the same server, which is what a request
costs at least. Then everybody watches one topic while events are published and pages are read.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from fastapi import APIRouter

from tacit.daemon.coordinator.study_store import StudyStore
from tacit.web.coordinator import application
from tacit.web.serving import Listen, SiteServer
from tacit.web.site import SiteSettings, own_hosts
from tacit.web.store import open_store

STUDY = """
[study]
name = "Readmission {k}"
purpose = "Which patients come back within a month of leaving the hospital, and what could have been done for them?"

[target]
name = "readmitted"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 110

[privacy]
epsilon = 1.0
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=200)
    parser.add_argument("--serve", action="store_true", help="be the site; the benchmark starts it")
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.studies))
        return
    command = [sys.executable, __file__, "--serve", "--studies", str(arguments.studies)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as site:
        assert site.stdout is not None
        try:
            asyncio.run(measure(site.stdout.readline().strip(), arguments))
        finally:
            site.terminate()


async def serve(n_studies: int) -> None:
    """A public site with studies; `/publish` publishes the time on the topic that `/events` watches."""
    studies = StudyStore(None)
    for k in range(n_studies):
        study = studies.create("ada", STUDY.format(k=k))
        for state in ("in review", "approved", "published"):
            study = studies.move(study, state, "bob")
    router = APIRouter()

    @router.get("/events")
    async def events() -> object:
        return site.live.watch(["study"])

    @router.get("/publish")
    async def publish() -> int:
        site.live.publish("study", "step", str(time.monotonic()))
        return site.live.n_watchers

    application.ROUTERS = (*application.ROUTERS, router)
    with tempfile.TemporaryDirectory() as folder:
        server = SiteServer(Listen(), Path(folder))
        settings = SiteSettings(name="Tacit coordinator", hosts=own_hosts(server.port))
        site, app = application.make_coordinator_site(settings, open_store(None), studies, is_public=True)
        print(server.url, flush=True)
        await server.serve(app, asyncio.Event(), site.live.close)


async def measure(url: str, arguments: argparse.Namespace) -> None:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        style = "/static/site.css"
        await client.get("/")
        ours, least, fresh = [], [], []
        for _ in range(arguments.repeat):  # they take turns
            ours.append(await timed(client, "/"))
            least.append(await timed(client, style))
            async with httpx.AsyncClient(base_url=url, timeout=120) as stranger:
                fresh.append(await timed(stranger, "/"))
        tell(f"first page, {arguments.studies} studies, open connection", ours)
        tell("first page, new connection", fresh)
        tell("style sheet, same server", least)
        print(f"first page / style sheet: {np.median(ours) / np.median(least):.1f}")
        await watch(client, url, arguments)


async def watch(client: httpx.AsyncClient, url: str, arguments: argparse.Namespace) -> None:
    delays: list[list[float]] = [[] for _ in range(arguments.watchers)]
    last = [""] * arguments.watchers
    tasks = [asyncio.create_task(follow(url, k, delays[k], last)) for k in range(arguments.watchers)]
    while (await client.get("/publish")).json() < arguments.watchers:
        await asyncio.sleep(0.1)
    for each in delays:
        each.clear()
    pages = []
    for _ in range(arguments.events):
        await client.get("/publish")
        pages.append(await timed(client, "/"))
        await asyncio.sleep(0.05)
    n_live = (await client.get("/publish")).json()
    ends = time.monotonic() + 60
    while len({*last}) > 1 and time.monotonic() < ends:  # until everybody has the last event
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    together = [delay for each in delays for delay in each]
    print(f"watchers live at the end: {n_live} of {arguments.watchers}; all have the last event: {len({*last}) == 1}")
    print(f"events got: {len(together) / arguments.watchers:.1f} each, of {arguments.events + 1} published")
    tell("from publishing to a watcher", together)
    tell("first page meanwhile", pages)


async def follow(url: str, k: int, delays: list[float], last: list[str]) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=None) as client, client.stream("GET", "/events") as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                last[k] = line.removeprefix("data: ")
                delays.append(time.monotonic() - float(last[k]))


async def timed(client: httpx.AsyncClient, path: str) -> float:
    start = time.perf_counter()
    answer = await client.get(path)
    answer.raise_for_status()
    return time.perf_counter() - start


def tell(what: str, seconds: list[float]) -> None:
    middle, most = np.percentile(seconds, [50, 95])
    print(f"{what + ':':<50} median {1000 * middle:.1f} ms, 95 % under {1000 * most:.1f} ms")


if __name__ == "__main__":
    main()
