"""The coordinator's folder: its secret, the authority, the roster and the server's configuration."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import nkeys  # type: ignore[import-untyped]

from tacit.errors import SettingError
from tacit.federation.member.address import Address, Credential
from tacit.federation.member.announced import Announced
from tacit.federation.member.folder import Pinned, read_json
from tacit.federation.member.identity import Identity, Member, Role
from tacit.federation.member.invitation import Invitation
from tacit.federation.member.roster import Roster, Ticket
from tacit.federation.member.rotation import Rotation
from tacit.federation.nats import cluster, server
from tacit.federation.nats.server import ServerSettings
from tacit.federation.nats.subject import COORDINATOR, check_name
from tacit.rand import Rng
from tacit.secure.certificate import AUTHORITY_CERTIFICATE, issue_server, make_authority
from tacit.secure.share import N_NODES
from tacit.storage import OWNER_ONLY, make_private_folder, write_json

FACTS = "coordinator.json"
_LOCK = ".lock"
_CENTER_LOCK = ".center.lock"


@dataclass(frozen=True, kw_only=True)
class Invite:
    """What an invitation is to say: whose it is, and for how long it is good."""

    name: str
    role: Role
    days: float = 7.0
    without_center: bool = False


class CoordinatorFolder:
    """The coordinator's folder, opened."""

    def __init__(self, path: Path) -> None:
        """Open the folder that `make` wrote."""
        if not (path / FACTS).exists():
            raise SettingError(
                f"{path} is not the folder of a coordinator; run `tacit coordinator init`, or name --folder"
            )
        match read_json(path / FACTS):
            case {"url": str(url), "server": {"host": str(host), "port": int(port)}}:
                self.settings: ServerSettings | None = ServerSettings(host=host, port=port)
                self.reload: str | None = None
                self._names: list[str] = []
            case {"url": str(url), "server": None, "reload": str() | None as reload, "names": list(names)}:
                self.settings, self.reload, self._names = None, reload, names  # servers that others run
            case _:
                raise SettingError(f"{path / FACTS} is damaged; restore it from your backup")
        self.path = path
        self.identity = Identity.load(COORDINATOR, "coordinator", path)
        self.roster = Roster(path / "roster.db")
        self.announced = Announced(path / "announced.db")
        authority = (path / AUTHORITY_CERTIFICATE).read_text(encoding="ascii")
        self.address = Address(url=url, authority=authority)

    @staticmethod
    def make(folder: Path, settings: ServerSettings, url: str | None) -> CoordinatorFolder:
        """A new coordinator: its keys, the authority, the server's certificate and configuration.

        Args:
            folder: where all of it goes; it must not hold a coordinator yet.
            settings: where the server listens.
            url: the address under which members reach it; the default is where it listens.
        """
        host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host
        url = f"tls://{host}:{settings.port}" if url is None else url
        Address(url=url, authority="")  # refuses an address in the open
        _check_new(folder)
        make_private_folder(folder)
        Identity.make(COORDINATOR, "coordinator", folder)
        make_authority(folder)
        issue_server(folder, _hosts(settings, url))
        server.write_configuration(folder, settings)
        facts = {"url": url, "server": asdict(settings)}
        write_json(folder / FACTS, facts, mode=OWNER_ONLY)
        made = CoordinatorFolder(folder)
        made.apply()
        return made

    @staticmethod
    def make_on_cluster(
        folder: Path, urls: Sequence[str], reload: str | None, names: Sequence[str] = ()
    ) -> CoordinatorFolder:
        """A new coordinator on message servers that others run; `nats.cluster` says what it writes for them.

        Args:
            folder: where all of it goes; it must not hold a coordinator yet.
            urls: the servers' addresses, any of which will do.
            reload: the command that brings a change of members to the servers; None: somebody does that by hand.
            names: further names for the servers' certificate, by which they reach each other.
        """
        address = Address(url=",".join(urls), authority="")
        _check_new(folder)
        hosts = cluster.hosts_of(address.urls)
        make_private_folder(folder)
        Identity.make(COORDINATOR, "coordinator", folder)
        make_authority(folder)
        issue_server(folder, [*hosts, *names], for_routes=True)
        cluster.write_cluster(folder, address.urls)
        facts = {"url": address.url, "server": None, "reload": reload, "names": list(names)}
        write_json(folder / FACTS, facts, mode=OWNER_ONLY)
        made = CoordinatorFolder(folder)
        cluster.tell_cluster(folder, made.roster.users(made.identity.member), None)  # no server runs yet
        return made

    @property
    def credential(self) -> Credential:
        """What opens the coordinator's connections; several may be open at once."""
        return Credential(name=COORDINATOR, nkey_seed=self.identity.nkey_seed)

    @property
    def pinned(self) -> Pinned:
        """What members are to pin now."""
        return Pinned(
            address=self.address, coordinator=self.identity.member, center=tuple(self.roster.members("center"))
        )

    def invite(self, wish: Invite) -> Invitation:
        """A new invitation, known to the running server at once."""
        check_name(wish.name, "the name")
        nodes = self.roster.members("center")
        if wish.role == "party" and len(nodes) < N_NODES and not wish.without_center:
            raise SettingError(
                f"a party pins the center's keys when it joins, and {len(nodes)} of {N_NODES} nodes have joined; "
                f"first `tacit coordinator invite NODE --center` and `tacit center init`, or say --without-center: "
                f"then no sums can be sealed"
            )
        if not wish.days > 0:
            raise SettingError(f"--days {wish.days} must be positive")
        id_ = Rng.system().bytes(8).hex()
        seed = nkeys.encode_seed(Rng.system().bytes(32), nkeys.PREFIX_BYTE_USER).decode()
        nkey = nkeys.from_seed(bytearray(seed.encode())).public_key.decode()
        expires = time.time() + wish.days * 86400
        self.roster.invite(Ticket(id=id_, name=wish.name, role=wish.role, nkey=nkey, expires=expires))
        self.apply()
        pinned = self.pinned if wish.role == "party" else Pinned(
            address=self.address, coordinator=self.identity.member, center=()
        )  # fmt: skip
        return Invitation(id=id_, name=wish.name, role=wish.role, expires=expires, nkey_seed=seed, pinned=pinned)

    def admit(self, invitation: str, member: Member) -> int | None:
        """Take a member in; the running server knows its keys at once."""
        own = self.identity.member
        if not {own.nkey, own.letter_key}.isdisjoint((member.nkey, member.letter_key)):
            raise SettingError(f"{member.name!r} brings a key that is the coordinator's; make new ones")
        seat = self.roster.admit(invitation, member)
        self.apply()
        return seat

    def revoke(self, name: str) -> None:
        """Shut a member out; the running server cuts its connection at once."""
        self.roster.revoke(name)
        self.apply()

    def rotate(self, rotation: Rotation) -> None:
        """Give a member its new keys; call `apply` when it has been told, since that cuts its connection."""
        self.roster.rotate(rotation)

    def renew(self) -> None:
        """A new certificate for the server, of the same authority."""
        if self.settings is None:
            issue_server(self.path, [*cluster.hosts_of(self.address.urls), *self._names], for_routes=True)
            cluster.write_cluster(self.path, self.address.urls)
            self.apply()
            return
        issue_server(self.path, _hosts(self.settings, self.address.url))
        server.reload(self.path)

    def apply(self) -> None:
        """Write the members' keys where the server reads them, and tell it."""
        with self._locked(_LOCK):
            if self.settings is None:
                cluster.tell_cluster(self.path, self.roster.users(self.identity.member), self.reload)
                return
            server.write_members(self.path, self.roster.users(self.identity.member))
            server.reload(self.path)

    def close(self) -> None:
        """Close the files."""
        self.roster.close()
        self.announced.close()

    def center_turn(self) -> AbstractContextManager[None]:
        """Held while the center's nodes are asked, so that they get the requests of several runs in one order."""
        return self._locked(_CENTER_LOCK)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """One process at a time: the daemon and commands share this folder."""
        with (self.path / name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _check_new(folder: Path) -> None:
    if (folder / FACTS).exists():
        raise SettingError(f"{folder} holds a coordinator already; name another --folder")


def _hosts(settings: ServerSettings, url: str) -> Sequence[str]:
    public = urlsplit(url).hostname
    hosts = ["localhost", "127.0.0.1", "::1"]
    for host in (settings.host, public):
        if host and host not in hosts and host != "0.0.0.0":
            hosts.append(host)
    return hosts
