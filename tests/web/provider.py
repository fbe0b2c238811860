"""A small provider of OpenID Connect, for tests: it confirms whoever it is told to, and lies as it is told to."""

from __future__ import annotations

import base64
import hashlib
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey

ISSUER = "https://id.example.org"


@cache
def own_key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "a"})


@dataclass
class TestProvider(httpx.AsyncBaseTransport):
    """Answers in place of the provider's server.

    Attributes:
        claims: what it says of the person, besides what every token has.
        lies: claims of the token that are replaced; None takes one away.
    """

    __test__ = False
    claims: dict[str, Any] = field(default_factory=dict)
    lies: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: own_key())
    signing_key: RSAKey | None = None
    is_down: bool = False
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def confirm(self, location: str) -> dict[str, str]:
        """The person says yes: what the browser brings back."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert location.startswith(f"{ISSUER}/authorize?")
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self._codes)}"
        self._codes[code] = query
        return {"code": code, "state": query["state"]}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_down:
            raise httpx.ConnectError("down")
        match request.url.path:
            case "/.well-known/openid-configuration":
                about = {
                    "issuer": ISSUER,
                    "authorization_endpoint": f"{ISSUER}/authorize",
                    "token_endpoint": f"{ISSUER}/token",
                    "jwks_uri": f"{ISSUER}/keys",
                }
                return httpx.Response(200, json={**about, **self.metadata}, request=request)
            case "/keys":
                return httpx.Response(200, json={"keys": [self.key.as_dict(private=False)]}, request=request)
            case "/token":
                return self._token(request)
        return httpx.Response(404, request=request)

    def _token(self, request: httpx.Request) -> httpx.Response:
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        asked = self._codes.pop(form["code"], None)
        secret = base64.b64encode(b"tacit:the secret").decode()
        if asked is None or request.headers.get("authorization") != f"Basic {secret}":
            return httpx.Response(400, json={"error": "invalid_grant"}, request=request)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return httpx.Response(400, json={"error": "invalid_grant"}, request=request)
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": "tacit", "exp": now + 300, "iat": now, "nonce": asked["nonce"], **self.claims}
        claims = {name: value for name, value in {**claims, **self.lies}.items() if value is not None}
        token = jwt.encode({"alg": "RS256", "kid": "a"}, claims, self.signing_key or self.key)
        return httpx.Response(200, json={"id_token": token, "access_token": "x"}, request=request)
