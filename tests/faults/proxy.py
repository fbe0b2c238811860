"""A connection that delays, goes dead or is cut: a proxy between a member and the message server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from urllib.parse import urlsplit

from tacit.federation.member.folder import PINNED
from tacit.federation.nats.blocking import BackgroundLoop


class Proxy:
    """Carries bytes both ways; `delay` holds each piece back, `dead` swallows all of them."""

    def __init__(self, folder: Path) -> None:
        """Put the proxy between the member whose folder this is and its server."""
        path = folder / PINNED
        form = json.loads(path.read_text())
        target = urlsplit(form["server"])
        self._host, self._port = target.hostname or "", target.port or 0
        self.delay = 0.0
        self.dead = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = BackgroundLoop()
        port = self._loop.run(self._listen())
        path.write_text(json.dumps({**form, "server": f"tls://127.0.0.1:{port}"}))

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(1 << 16):
                await asyncio.sleep(self.delay)
                if not self.dead:
                    writer.write(piece)
                    await writer.drain()
        self._writers.discard(writer)
        writer.close()

    def cut(self) -> None:
        """End every connection at once."""
        self._loop.run(self._cut())

    async def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def close(self) -> None:
        self.cut()
        self._server.close()
        self._loop.close()
