"""How a daemon and its site are served together until Ctrl-C: the same for a coordinator and a party."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

if TYPE_CHECKING:
    import asyncio

WebListen = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where the site listens; elsewhere than on this machine by TLS.")
]
WebHost = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="A host name under which browsers reach the site.")
]


class OpenSite(Protocol):
    """A site whose socket listens and whose files are open."""

    async def serve(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        ...

    def close(self) -> None:
        """Close socket and files."""
        ...


def serve_until_stopped(daemon: Callable[[asyncio.Event], Coroutine[Any, Any, None]], site: OpenSite | None) -> None:
    """Run a daemon, and its site if there is one, until a signal comes or one of them fails; then close the site."""
    import asyncio

    from tacit.federation.nats.service import stop_on_signals

    async def serve() -> None:
        stop = stop_on_signals()
        if site is None:
            await daemon(stop)
            return
        from tacit.web.serving import together

        await together(stop, daemon(stop), site.serve(stop))

    try:
        asyncio.run(serve())
    finally:
        if site is not None:
            site.close()
