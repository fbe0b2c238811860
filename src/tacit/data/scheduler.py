"""Where a party's own cluster is reached, and how safely: an address that would show records is refused."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from tacit.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Scheduler:
    """Where a party's cluster is reached.

    Attributes:
        address: "tls://host:8786", or "tcp://127.0.0.1:8786" for one on this machine.
        ca, cert, key: files for TLS: the authority of the party's own cluster, and this machine's certificate and key.
    """

    address: str
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme not in ("tcp", "tls") or not parts.hostname or parts.path or "@" in parts.netloc:
            raise SettingError(f"cluster = {self.address!r} is no address of a scheduler; write 'tls://host:8786'")
        given = [name for name in ("ca", "cert", "key") if getattr(self, name) is not None]
        if parts.scheme == "tls" and len(given) < 3:
            raise SettingError(f"{self.address} needs a certificate: name ca, cert and key, all three")
        if parts.scheme == "tcp" and given:
            raise SettingError(f"{self.address} uses no certificate; write tls:// to use {', '.join(given)}")
        if parts.scheme == "tcp" and not is_loopback(parts.hostname):
            raise SettingError(
                f"cluster = {self.address!r} is on another machine and not encrypted: whoever can reach it can read "
                f"records and run code where they are; start Dask with TLS and write tls://"
            )


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches a host of that name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
