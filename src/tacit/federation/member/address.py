"""Where the message server is, and with what a member opens its connection."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the message server is, and whose certificate it must show (in PEM).

    Servers of one NATS cluster stand one after another: "tls://a:4222,tls://b:4222,tls://c:4222".
    """

    url: str
    authority: str

    def __post_init__(self) -> None:
        for one in self.urls:
            if not one.startswith("tls://"):
                raise SettingError(f"the server's address {one!r} must start with tls://; nothing travels in the open")
        if len(set(self.urls)) < len(self.urls):
            raise SettingError(f"the servers' addresses {self.url!r} name one twice; name each once")

    @property
    def urls(self) -> tuple[str, ...]:
        """The servers, any of which will do."""
        return tuple(one.strip() for one in self.url.split(","))


@dataclass(frozen=True, kw_only=True)
class Credential:
    """Who opens the connection: the name of its inbox, and the secret of its nkey."""

    name: str
    nkey_seed: str

    def __repr__(self) -> str:
        return f"Credential({self.name!r})"
