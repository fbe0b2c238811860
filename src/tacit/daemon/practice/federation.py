"""The practice federation: its folders, its processes, and their end.

Each daemon is a process of its own that runs the ordinary command, as in a real federation. Its pipe to this process
is its life line: when this end closes, for whatever reason, the daemon stops in order. So nothing is left behind, even
if this process is killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tacit.daemon.center.handler import free_port, prepare_engine
from tacit.daemon.coordinator.joining import join
from tacit.daemon.coordinator.study_run import offer_of
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.decision import ConsentTerms, opt_in
from tacit.daemon.party.owner_text import runs_that_fit
from tacit.daemon.party.settings import DataSource, PartyFile, write_party_file
from tacit.daemon.practice.material import LATER, NODES, PARTIES, ready_approval, ready_study, write_material
from tacit.errors import RunError, SettingError
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.identity import Role
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.server import MessageServer, ServerSettings
from tacit.secure.center.child import ChildProcess
from tacit.storage import OWNER_ONLY, write_whole

COORDINATOR = "coordinator"
_MADE = ".practice"  # is there when a folder holds a whole practice federation
_START_SECONDS = 300.0  # a bound on failure, also on a slow and loaded machine
_STOP_SECONDS = 60.0
_LOOK_SECONDS = 0.05

Tell = Callable[[str], None]
Options = Callable[[str, Path], Sequence[str]]


class PracticeFederation:
    """A message server, three center nodes and three parties on loopback; a fourth party is invited.

    Guarantees:
        After `close` none of its processes is left. Nobody but this machine reaches any of them.
    """

    def __init__(self, folder: Path, program: str, tell: Tell) -> None:
        """Nothing starts yet.

        Args:
            folder: an empty one, or one that an earlier practice federation was kept in.
            program: the module that runs a command: it gets a pipe's descriptor, then the command's words.
            tell: is told what happens, line by line.
        """
        self.folder = folder
        self.is_new = not (folder / _MADE).exists()
        if self.is_new and any(folder.iterdir()):
            raise SettingError(f"{folder} holds something else already; name an empty folder")
        self._program, self._tell = program, tell
        self._children: dict[str, ChildProcess] = {}

    def start(self, options: Options) -> None:
        """Start everything, and return when all of it serves.

        Args:
            options: what a daemon's `serve` is told besides its folder, from its role and folder; asked just before it
                starts.

        Raises:
            RunError: if a daemon does not start; `close` then ends the others.
        """
        if self.is_new:
            self._tell("writing the records of four hospitals, and a study")
            write_material(self.folder)
            CoordinatorFolder.make(self.folder / COORDINATOR, ServerSettings(port=free_port()), None).close()
        self._tell("starting the message server")
        self._serve(COORDINATOR, COORDINATOR, options)
        self._wait((COORDINATOR,))
        if self.is_new:
            self._join()
        for name in NODES:
            self._serve("center", name, options)
        for name in PARTIES:
            self._serve("party", name, options)
        if self.is_new:
            self._announce()
            write_whole(self.folder / _MADE, "")
        self._tell(f"waiting for {', '.join((*NODES, *PARTIES))}")
        self._wait((*NODES, *PARTIES))
        self._wait_until(self._all_are_told, "the parties are told of each other")

    def opt_everybody_in(self) -> None:
        """Let every party accept the others and take part in the ready-made study, as its owner would on its page."""
        study = ready_study()
        for name in PARTIES:
            folder = self.folder / name
            known = KnownMembers(folder)
            known.accept({other: known.parties()[other].fingerprint for other in PARTIES if other != name})
            consents = Consents(folder / CONSENT_FILE)
            consents.keep(study)
            offered = consents.named(study.digest())
            if not offered.state:
                terms = ConsentTerms(runs=runs_that_fit(offered, PartyFile.read(folder).policy))
                opt_in(MemberFolder.load(folder, "party"), consents, offered, terms)
            consents.close()
        self._tell("all have accepted each other and opted in")

    def check(self) -> None:
        """Raise a RunError if a daemon has ended."""
        for name, child in self._children.items():
            if not child.is_alive:
                raise RunError(f"{name} has ended: {self._last_words(name)}; all others are stopped, too")

    def close(self) -> None:
        """Stop everything, the message server last."""
        names = sorted(self._children, key=lambda name: name == COORDINATOR)
        for name in names:
            if name != COORDINATOR:
                self._children[name].pipe.close()
        for name in names:
            child = self._children[name]
            child.pipe.close()
            child.join(_STOP_SECONDS)
        self._children.clear()
        if (self.folder / COORDINATOR).exists():  # whoever was killed has not stopped its server
            coordinator = CoordinatorFolder(self.folder / COORDINATOR)
            if coordinator.settings is not None:
                MessageServer(coordinator.path, coordinator.settings).stop()
            coordinator.close()

    # --- making it ---------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        self._tell("three center nodes join")
        for name in NODES:
            self._invite(name, "center")
            prepare_engine(self.folder / name, None)
            KnownMembers(self.folder / name).believe_all()  # here one person is everybody
        self._tell("three hospitals join with keys of their own")
        for name in (*PARTIES, LATER):
            self._invite(name, "party", joins=name != LATER)
        for name in PARTIES:
            write_party_file(self.folder / name, DataSource(file=self.folder / f"{name}.csv"))

    def _invite(self, name: str, role: Role, *, joins: bool = True) -> None:
        coordinator = CoordinatorFolder(self.folder / COORDINATOR)
        try:
            invitation = coordinator.invite(Invite(name=name, role=role))
        finally:
            coordinator.close()
        if joins:
            join(invitation, self.folder / name)
        else:
            write_whole(self.folder / f"{name}.invite", invitation.text(), mode=OWNER_ONLY)

    def _announce(self) -> None:
        coordinator = CoordinatorFolder(self.folder / COORDINATOR)
        try:
            approval = ready_approval(self.folder)
            coordinator.announced.approve(approval)
            with BlockingConnection(coordinator) as connection:
                connection.announce(offer_of(ready_study(), [approval]))
        finally:
            coordinator.close()

    # --- processes ---------------------------------------------------------------------------------------------------

    def _serve(self, role: str, name: str, options: Options) -> None:
        self._log(name).unlink(missing_ok=True)
        folder = self.folder / name
        words = [role, "serve", "--folder", str(folder), *options(role, folder)]
        self._children[name] = ChildProcess(["-m", self._program], words, self._log(name))

    def _wait(self, names: Sequence[str]) -> None:
        for name in names:
            self._wait_until(partial(self._is_serving, name), f"{name} serves")

    def _wait_until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not holds():
            self.check()
            if time.monotonic() > deadline:
                raise RunError(
                    f"{what}: that did not happen within {_START_SECONDS:g} s; see the logs in {self.folder}"
                )
            time.sleep(_LOOK_SECONDS)

    def _is_serving(self, name: str) -> bool:
        return '"serving"' in self._log(name).read_text(errors="replace")

    def _all_are_told(self) -> bool:
        return all(set(PARTIES) <= {*KnownMembers(self.folder / name).parties()} for name in (*PARTIES, *NODES))

    def _last_words(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"
