"""What stands before every page: the host, the size of the body, the visitor, the headers, and the last net."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.web.error_page import TooLong, failure_page

if TYPE_CHECKING:
    from tacit.web.site import Site

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none at all, browsers do not say where a form comes from
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
HSTS = "max-age=31536000"


class Protection:
    """An application that is protected.

    Guarantees:
        Every answer, errors included, has the headers above. A request under another host name, or with a longer body
        than the site takes, reaches no page. No answer tells more of an error of ours than that there was one.
    """

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        request.state.visit = visit = self._site.visits.read(request)
        is_started = is_finished = False

        async def guarded(message: Message) -> None:
            nonlocal is_started, is_finished
            is_finished = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                is_started = True
                headers = MutableHeaders(scope=message)
                self._add_headers(headers, scope["path"])
                self._site.visits.write(visit, headers)
            await send(message)

        try:
            if (wrong := self._wrong(Headers(scope=scope))) is not None:
                await failure_page(request, self._site, *wrong)(scope, receive, guarded)
                return
            await self._app(scope, _bounded(receive, self._site.settings.max_body), guarded)
        except Exception as error:
            self._site.on_failure(error)
            if not is_started:
                await failure_page(request, self._site, 500)(scope, receive, guarded)
            elif not is_finished:
                raise  # half an answer is out: the connection is cut

    def _wrong(self, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if host.lower() not in self._site.settings.hosts:
            return 400, "This address is not one under which the site is reached."
        if (length := headers.get("content-length", "0")).isdecimal() and int(
            length[:20]
        ) > self._site.settings.max_body:
            return 413, ""
        return None

    def _add_headers(self, headers: MutableHeaders, path: str) -> None:
        for name, value in HEADERS.items():
            headers[name] = value
        if self._site.settings.tls:
            headers["strict-transport-security"] = HSTS
        if path.startswith("/static/"):
            headers["cache-control"] = "public, max-age=3600"
        else:
            headers.setdefault("cache-control", "no-store")


def _bounded(receive: Receive, most: int) -> Receive:
    """`receive`, until it has brought more than `most` bytes."""
    n_bytes = 0

    async def bounded() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > most:
            raise TooLong
        return message

    return bounded
