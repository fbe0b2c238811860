"""Message servers that an organisation runs itself: a NATS cluster, of which any server will do.

The coordinator then starts no server. It writes what the servers read, into the folder `cluster`:

    server-0.conf ...   one for each server: where it listens, its routes to the others (TLS both ways), its limits
    members.conf        the keys, and what each may do; written anew whenever somebody joins or is revoked
    users.conf          the same as a bare list, for a cluster that has accounts of its own
    server.pem, .key    a certificate for all servers' names; ca.pem signed it

After each change it runs the reload command that its operator gave, which brings the files to the servers and tells
them to read them. Servers keep nothing, so that one may be lost at any time.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tacit.data.scheduler import is_loopback
from tacit.errors import RunError, SettingError
from tacit.federation.nats.server import LIMITS, MEMBERS, quoted, users_text, write_members
from tacit.federation.nats.subject import Permissions
from tacit.secure.certificate import AUTHORITY_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY
from tacit.storage import make_private_folder, write_whole

FOLDER = "cluster"
USERS = "users.conf"
ROUTE_PORTS = 2000  # a server's port for routes is its port for clients and so many more: 6222 for 4222
_RELOAD_SECONDS = 120.0


class OwnCluster:
    """Servers that others start and stop."""

    is_running = True

    def start(self) -> bool:
        """Nothing is started."""
        return False

    def stop(self) -> None:
        """Nothing is stopped."""


def write_cluster(folder: Path, urls: Sequence[str]) -> None:
    """Write each server's configuration, with the coordinator's certificate for all of them."""
    cluster = make_private_folder(folder / FOLDER)
    for name in (AUTHORITY_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY):
        shutil.copy(folder / name, cluster / name)  # a key stays readable by its owner alone
    places = [_place(url) for url in urls]
    for number, (host, port) in enumerate(places):
        own = "127.0.0.1" if is_loopback(host) else "0.0.0.0"
        routes = [f"nats-route://{h}:{p + ROUTE_PORTS}" for k, (h, p) in enumerate(places) if k != number]
        tls = f"cert_file: {quoted(SERVER_CERTIFICATE)}, key_file: {quoted(SERVER_KEY)}, timeout: 10"
        lines = [
            f"# Written by `tacit coordinator init --servers`. Start it in this folder: nats-server -c {_file(number)}",
            f'listen: "{own}:{port}"',
            f'server_name: "tacit-{number}"',
            *LIMITS,
            f"tls {{ {tls} }}",
            "cluster {",
            '  name: "tacit"',
            f'  listen: "{own}:{port + ROUTE_PORTS}"',
            f"  tls {{ {tls}, ca_file: {quoted(AUTHORITY_CERTIFICATE)}, verify: true }}",
            f"  routes: [{', '.join(map(quoted, routes))}]",
            "  no_advertise: true",
            "}",
            f"include {quoted(MEMBERS)}",
        ]
        write_whole(cluster / _file(number), "\n".join(lines) + "\n")


def tell_cluster(folder: Path, users: Mapping[str, Permissions], reload: str | None) -> None:
    """Write who may do what, and run the operator's command, which brings it to the servers."""
    cluster = folder / FOLDER
    write_members(cluster, users)
    write_whole(cluster / USERS, users_text(users))
    if reload is None:
        return
    try:
        done = subprocess.run(
            shlex.split(reload),
            cwd=cluster, env={**os.environ, "TACIT_CLUSTER": str(cluster.resolve())},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=_RELOAD_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"the reload command {reload!r} does not run ({type(error).__name__}); mend it") from None
    if done.returncode != 0:
        told = (done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise RunError(
            f"the reload command {reload!r} ended with {done.returncode} ({told}); servers may not know the members"
        )


def hosts_of(urls: Sequence[str]) -> list[str]:
    """The names that the servers' certificate must have."""
    return list(dict.fromkeys(_place(url)[0] for url in urls))


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    if not parts.hostname or port is None or not 1 <= port <= 65535 - ROUTE_PORTS:
        raise SettingError(f"the server's address {url!r} needs a host and a port below {65536 - ROUTE_PORTS}")
    return parts.hostname, port


def _file(number: int) -> str:
    return f"server-{number}.conf"
