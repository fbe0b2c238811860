"""`web.toml` in the coordinator's folder: what the site is called, and whom it asks who somebody is.

    [site]
    name = "Studies of the northern hospitals"
    address = "https://studies.example.org"  # only where a proxy before the site speaks TLS with browsers

    [sign_on]
    label = "the university"
    issuer = "https://id.example.org"
    client_id = "tacit"
    client_secret_file = "sign_on.secret"    # beside web.toml, readable by its owner alone

The file may be missing; docs/web.md explains it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tacit.errors import SettingError, StudyError
from tacit.studies.strict import Section
from tacit.visible import unseen
from tacit.web.open_id import ProviderSettings

FILE = "web.toml"
_NAME = "Tacit coordinator"
_KEYS = ("label", "issuer", "client_id", "client_secret_file")


@dataclass(frozen=True, kw_only=True)
class WebFile:
    """The file, read; without one the site has its usual name, no proxy and no single sign-on.

    Attributes:
        name: what stands on top of every page.
        host: where a proxy with TLS shows the site: host, and port if it is not the usual one; empty without a proxy.
        provider: whom the site asks who somebody is.
    """

    name: str = _NAME
    host: str = ""
    provider: ProviderSettings | None = None

    @staticmethod
    def read(folder: Path) -> WebFile:
        """`web.toml` in `folder`; whatever is wrong with it is one line that starts with its name."""
        path = folder / FILE
        if not path.exists():
            return WebFile()
        try:
            form = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
        except (ValueError, RecursionError) as error:
            raise SettingError(
                f"{path} is not TOML ({error}); texts need quotes, keys are written key = value"
            ) from None
        try:
            return _read(form, path)
        except (StudyError, SettingError) as error:
            raise SettingError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None


def _read(form: dict[str, object], path: Path) -> WebFile:
    whole = Section(form, source=str(path), path="")
    whole.check_keys(("site", "sign_on"))
    tables = {name: table for name, table in form.items() if isinstance(table, dict)}
    for name in form:
        if name not in tables:
            raise whole.error(name, f"must be a table; write [{name}] on a line of its own")
    site = Section(tables.get("site", {}), source=str(path), path="site")
    site.check_keys(("name", "address"))
    host = _host(site.text("address", "write https://HOST")) if "address" in site else ""
    name = site.text("name", "name the site") if "name" in site else _NAME
    if len(name) > 60 or unseen(name):
        raise site.error("name", "must have up to 60 characters that can be seen")
    return WebFile(name=name, host=host, provider=_provider(tables["sign_on"], path) if "sign_on" in tables else None)


def _host(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.netloc or parts.path.strip("/") or parts.query or "@" in parts.netloc:
        raise SettingError(
            f"site.address {address!r} must be https://HOST and nothing more; leave it out without a proxy"
        )
    return parts.netloc.lower().removesuffix(":443")


def _provider(table: dict[str, object], path: Path) -> ProviderSettings:
    section = Section(table, source=str(path), path="sign_on")
    section.check_keys(_KEYS)
    texts = {key: section.text(key, "single sign-on needs it; see docs/web.md") for key in _KEYS}
    file = path.parent / texts.pop("client_secret_file")
    return ProviderSettings(**texts, client_secret=read_secret(file))


def read_secret(file: Path) -> str:
    """The one line of a file that only its owner may read."""
    try:
        if file.stat().st_mode & 0o077:
            raise SettingError(f"others may read {file}, which holds a secret: chmod 600 it")
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} cannot be read ({type(error).__name__}); check the path") from None
