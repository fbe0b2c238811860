"""OpenID Connect, as much of it as a site needs: the authorization code flow with state, nonce and PKCE.

    1. The visitor is sent to the provider with a state, a nonce and the digest of a verifier, all drawn for this visit.
    2. The provider sends the visitor back with a code and the state. The state must be one of this very visit.
    3. The site changes code and verifier for an identity token, which names the nonce and is signed by the provider.

What the visitor's browser carries is believed only as far as the provider signed it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from tacit.errors import RunError, SettingError
from tacit.web.session import new_key

_SECONDS = 600.0  # to log in at the provider
_MOST_PENDING = 1000
_KEEP_SECONDS = 3600.0  # what the provider says about itself
_LEEWAY = 60
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
_LONGEST_ANSWER = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ProviderSettings:
    """Whom the site asks who somebody is.

    Attributes:
        label: what stands on the button.
        issuer: the provider's address.
        client_id, client_secret: what the provider knows this site by.
    """

    label: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)

    def __post_init__(self) -> None:
        check_safe(self.issuer)


class SignOnFailed(RunError):
    """The provider did not say who somebody is, or not so that it can be believed."""


@dataclass(frozen=True, kw_only=True)
class KnownPerson:
    """Whom the provider names.

    Attributes:
        subject: the issuer and its own name for the person; never given to another one.
        email: the person's address, if the provider has verified it; else empty.
    """

    subject: str
    email: str


@dataclass(frozen=True)
class _Pending:
    key: str
    nonce: str
    verifier: str
    place: str
    ends: float


class Provider:
    """One provider, and the visitors that are on their way to it and back."""

    def __init__(self, settings: ProviderSettings, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """`transport` is for tests."""
        self.settings = settings
        self._transport = transport
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._about: tuple[float, dict[str, Any], KeySet] | None = None

    async def begin(self, key: str, place: str, back: str) -> str:
        """Where to send the visitor with this key, who wants to go on to `place`; the provider answers to `back`."""
        about, _ = await self._metadata()
        state, pending = new_key(), _Pending(key, new_key(), new_key(), place, time.time() + _SECONDS)
        self._pending[state] = pending
        while len(self._pending) > _MOST_PENDING:
            self._pending.popitem(last=False)
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": back,
            "scope": "openid email",
            "state": state,
            "nonce": pending.nonce,
            "code_challenge": _challenge(pending.verifier),
            "code_challenge_method": "S256",
        }
        where = about["authorization_endpoint"]
        return f"{where}{'&' if '?' in where else '?'}{urlencode(query)}"

    async def finish(self, key: str, answer: Mapping[str, str], back: str) -> tuple[KnownPerson, str]:
        """Whom the provider names for the visitor with this key, and where that visitor wanted to go.

        Raises:
            SignOnFailed: if anything is not as it must be. The state is used up in any case.
        """
        pending = self._pending.pop(answer.get("state", ""), None)
        if pending is None or pending.ends < time.time() or not hmac.compare_digest(pending.key.encode(), key.encode()):
            raise SignOnFailed("this way in was begun elsewhere, or too long ago; begin again here")
        if not answer.get("code"):
            raise SignOnFailed("the sign-on service did not confirm who you are; begin again")
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": back,
            "code_verifier": pending.verifier,
        }
        about, keys = await self._metadata()
        told = await self._ask(about["token_endpoint"], form)
        return self._person(str(told.get("id_token", "")), keys, pending.nonce), pending.place

    def _person(self, token: str, keys: KeySet, nonce: str) -> KnownPerson:
        """Whom a token names, if this provider signed it for this site and this very visit."""
        own = self.settings
        claims_wanted = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY,
            iss={"essential": True, "value": own.issuer},
            aud={"essential": True, "value": own.client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            claims = jwt.decode(token, keys, algorithms=list(_ALGORITHMS)).claims
            claims_wanted.validate(claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise SignOnFailed(f"the sign-on service's answer cannot be believed ({type(error).__name__})") from None
        if claims.get("azp", own.client_id) != own.client_id or not claims["sub"]:
            raise SignOnFailed("the sign-on service's answer is for another site")
        email = claims.get("email")
        is_verified = claims.get("email_verified") is True and isinstance(email, str)
        return KnownPerson(subject=f"{own.issuer} {claims['sub']}", email=str(email) if is_verified else "")

    async def _metadata(self) -> tuple[dict[str, Any], KeySet]:
        """What the provider says about itself: its addresses and its keys."""
        if self._about is not None and self._about[0] > time.time():
            return self._about[1], self._about[2]
        about = await self._ask(f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        if about.get("issuer") != self.settings.issuer:
            raise SignOnFailed("the sign-on service says another name than web.toml has for it")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            try:
                check_safe(str(about.get(name, "")))
            except SettingError as error:
                raise SignOnFailed(f"the sign-on service's {name} will not do: {error}") from None
        try:
            keys = KeySet.import_key_set(await self._ask(about["jwks_uri"]))  # type: ignore[arg-type]
        except (JoseError, ValueError, TypeError, KeyError, AttributeError):
            raise SignOnFailed("the sign-on service's keys cannot be read") from None
        self._about = (time.time() + _KEEP_SECONDS, about, keys)
        return about, keys

    async def _ask(self, url: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        """The provider's answer, a JSON object; a form goes with the site's own secret."""
        own = self.settings
        try:
            async with httpx.AsyncClient(transport=self._transport, timeout=10.0, follow_redirects=False) as client:
                if form is None:
                    answer = await client.get(url)
                else:
                    answer = await client.post(url, data=form, auth=(own.client_id, own.client_secret))
            answer.raise_for_status()
            told = answer.json() if len(answer.content) <= _LONGEST_ANSWER else None
        except (httpx.HTTPError, ValueError) as error:
            raise SignOnFailed(f"the sign-on service does not answer as it must ({type(error).__name__})") from None
        if not isinstance(told, dict):
            raise SignOnFailed("the sign-on service answers with something else than it must")
        return told


def check_safe(url: str) -> None:
    """Refuse an address on which somebody between could listen: all but https, or this machine."""
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not parts.hostname or not (parts.scheme == "https" or is_local):
        raise SettingError(f"{url!r} must begin with https://, so that nobody listens")


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode("ascii").rstrip("=")
