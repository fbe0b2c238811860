"""A visit: who asks, which forms are theirs, and which cookies they get.

A form carries a token: an HMAC, by the site's own key, of the visitor's cookie. Another site can make a browser send
a form and its cookies, but cannot read the token. So a form without it was not made here.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection

from tacit.web.account import Account, Accounts
from tacit.web.session import Flash, SiteSessions, new_key

_LONGEST_KEY = 64


@dataclass(kw_only=True)
class SiteVisit:
    """One request's visitor.

    Attributes:
        account: who is logged in; None for a visitor.
        key: the session's key, or the visitor's; tokens are bound to it.
        address: where the request comes from.
        expired: whether a session's cookie came that no longer opens one.
    """

    account: Account | None
    key: str
    address: str
    expired: bool
    secret: bytes = field(repr=False)
    is_known: bool = True  # the browser has the key already
    must_keep: bool = False  # the browser is to get the key

    def token(self) -> str:
        """What a form of this visitor carries."""
        self.must_keep = True
        return hmac.new(self.secret, b"form " + self.key.encode(), hashlib.sha256).hexdigest()

    def is_own(self, token: str) -> bool:
        """Whether a form that came with this token was made for this visitor."""
        known = hmac.new(self.secret, b"form " + self.key.encode(), hashlib.sha256).hexdigest()
        return self.is_known and hmac.compare_digest(known.encode(), token.encode("utf-8", "replace"))


class Visits:
    """Reads and writes the cookies."""

    def __init__(self, secret: bytes, sessions: SiteSessions, accounts: Accounts, *, tls: bool) -> None:
        # Browsers share cookies between all ports of a host: each site has names of its own.
        own = hashlib.sha256(b"cookie " + secret).hexdigest()[:8]
        prefix = "__Host-" if tls else ""
        self.session_cookie, self.visit_cookie = f"{prefix}tacit-{own}", f"{prefix}tacit-visit-{own}"
        self._secret, self._sessions, self._accounts, self._tls = secret, sessions, accounts, tls

    def read(self, connection: HTTPConnection) -> SiteVisit:
        """Who asks."""
        address = connection.client.host if connection.client else ""
        session = connection.cookies.get(self.session_cookie, "")[:_LONGEST_KEY]
        name = self._sessions.account_of(session) if session else None
        account = self._accounts.find(name) if name is not None else None
        if account is not None and not account.disabled:
            return SiteVisit(account=account, key=session, address=address, expired=False, secret=self._secret)
        known = connection.cookies.get(self.visit_cookie, "")[:_LONGEST_KEY]
        return SiteVisit(
            account=None, key=known or new_key(), address=address, expired=bool(session), secret=self._secret,
            is_known=bool(known),
        )  # fmt: skip

    def log_in(self, visit: SiteVisit, account: Account) -> None:
        """Begin a session of this account under a new key."""
        visit.account, visit.key = account, self._sessions.begin(account.name)
        visit.is_known, visit.must_keep, visit.expired = False, True, False

    def log_out(self, visit: SiteVisit) -> None:
        """End the session."""
        if visit.account is not None:
            self._sessions.end(visit.key)
        visit.account, visit.key, visit.is_known, visit.must_keep, visit.expired = None, new_key(), False, True, True

    def flash(self, visit: SiteVisit, flash: Flash) -> None:
        """Keep a message for the next page of whoever is logged in."""
        if visit.account is not None:
            self._sessions.flash(visit.key, flash)

    def take_flashes(self, visit: SiteVisit) -> list[Flash]:
        """The messages that wait for this visitor."""
        return self._sessions.take_flashes(visit.key) if visit.account is not None else []

    def write(self, visit: SiteVisit, headers: MutableHeaders) -> None:
        """Set the cookies that the visit asks for."""
        if visit.account is None and visit.expired:
            headers.append("set-cookie", self._cookie(self.session_cookie, "", "; Max-Age=0"))
        if visit.must_keep and not visit.is_known:
            name = self.visit_cookie if visit.account is None else self.session_cookie
            headers.append("set-cookie", self._cookie(name, visit.key))

    def _cookie(self, name: str, value: str, more: str = "") -> str:
        return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax{'; Secure' if self._tls else ''}{more}"
