"""Where the message server is, and with what a member opens its connection."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the message server is, and whose certificate it must show (in PEM)."""

    url: str
    authority: str

    def __post_init__(self) -> None:
        if not self.url.startswith("tls://"):
            raise SettingError(f"the server's address {self.url!r} must start with tls://; nothing travels in the open")


@dataclass(frozen=True, kw_only=True)
class Credential:
    """Who opens the connection: the name of its inbox, and the secret of its nkey."""

    name: str
    nkey_seed: str

    def __repr__(self) -> str:
        return f"Credential({self.name!r})"
