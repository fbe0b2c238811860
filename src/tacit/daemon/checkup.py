"""A check-up of one member: each finding says what was looked at, whether it is well, and what to do if it is not."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tacit.daemon.party.anchor import AnchoredLedger
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.settings import PartyFile
from tacit.errors import TacitError
from tacit.federation.log_check import check_releases
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.identity import SECRET_FILE, Role
from tacit.federation.nats import subject
from tacit.federation.nats.connection import Connection
from tacit.federation.nats.kind import CLOCK_TIME
from tacit.federation.nats.letter import MAX_SKEW, read_letter
from tacit.federation.nats.server import find_server
from tacit.secure.certificate import AUTHORITY_CERTIFICATE, SERVER_CERTIFICATE, days_left
from tacit.secure.share import N_NODES
from tacit.studies.study import Study

_LEAST_DISK = 1 << 30
_SOON_DAYS = 30.0


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One thing that was looked at."""

    what: str
    is_well: bool
    told: str


async def check_member(path: Path, role: Role) -> list[CheckResult]:
    """A party or a center node."""
    results = [_try("keys", lambda: _keys(path, role)), _disk(path)]
    try:
        folder = MemberFolder.load(path, role)
    except TacitError:
        return results
    results += await _connection(folder)
    results.append(
        CheckResult(
            what="center",
            is_well=role == "center" or len(folder.pinned.center) == N_NODES,
            told=f"{len(folder.pinned.center)} of {N_NODES} nodes' keys are pinned"
            + (
                "" if len(folder.pinned.center) == N_NODES or role == "center" else "; no sum can be sealed: join again"
            ),
        )
    )
    if role == "party":
        results += _party(folder)
    return results


async def check_coordinator(folder: Path) -> list[CheckResult]:
    """The coordinator."""
    results = [
        _try("keys", lambda: _keys(folder, "coordinator")),
        _try("program", find_server),
        _disk(folder),
        *(_certificate(folder / name) for name in (AUTHORITY_CERTIFICATE, SERVER_CERTIFICATE)),
    ]
    try:
        coordinator = CoordinatorFolder(folder)
    except TacitError:
        return results
    nodes, parties = coordinator.roster.members("center"), coordinator.roster.members("party")
    told = f"{len(parties)} parties, {len(nodes)} of {N_NODES} center nodes"
    results.append(CheckResult(what="members", is_well=len(nodes) == N_NODES and bool(parties), told=told))
    connection = Connection(coordinator.address, coordinator.credential)
    try:
        await connection.open(seconds=3.0)
        results.append(CheckResult(what="connection", is_well=True, told=coordinator.address.url))
    except TacitError as error:
        results.append(CheckResult(what="connection", is_well=False, told=str(error)))
    finally:
        await connection.close()
        coordinator.close()
    return results


async def _connection(folder: MemberFolder) -> list[CheckResult]:
    connection = Connection(folder.pinned.address, folder.credential)
    name = folder.identity.name
    try:
        await connection.open(seconds=3.0)
    except TacitError as error:
        return [CheckResult(what="connection", is_well=False, told=str(error))]
    try:
        results = [CheckResult(what="connection", is_well=True, told=folder.pinned.address.url)]
        results.append(await _certificate_left(connection))
        results.append(await _permissions(connection, name))
        results.append(await _clock(connection, folder))
        return results
    finally:
        await connection.close()


async def _permissions(connection: Connection, name: str) -> CheckResult:
    """Somebody else's subject must be refused by the server."""
    refused = await connection.is_refused("tacit.ask.nobody-but-the-owner-of-this-name")
    told = f"{name} hears its own subjects only" if refused else (
        "the server lets this key hear other parties' questions; its configuration is not Tacit's members.conf"
    )  # fmt: skip
    return CheckResult(what="permissions", is_well=refused, told=told)


async def _clock(connection: Connection, folder: MemberFolder) -> CheckResult:
    """Compare this clock with the coordinator's."""
    name = folder.identity.name
    try:
        reply = await connection.ask(subject.clock(name), b"", hear=subject.time(name), seconds=3.0)
        letter = read_letter(reply, sender=folder.pinned.coordinator, recipient=name, kinds=(CLOCK_TIME,))
    except TacitError:
        return CheckResult(what="clock", is_well=False, told="the coordinator does not answer; is its daemon running?")
    difference = time.time() - letter.time
    well = abs(difference) < MAX_SKEW / 2
    told = f"{difference:+.1f} s from the coordinator's"
    return CheckResult(what="clock", is_well=well, told=told if well else f"{told}; set both clocks (NTP)")


async def _certificate_left(connection: Connection) -> CheckResult:
    days = connection.certificate_days()
    well = days is None or days > _SOON_DAYS
    told = "valid" if days is None else f"the server's is valid for {days:.0f} more days"
    return CheckResult(
        what="certificate", is_well=well, told=told + ("" if well else "; the coordinator must renew it")
    )


def _party(folder: MemberFolder) -> list[CheckResult]:
    results = [_try("party.toml", lambda: _party_file(folder.path)), _try("log", lambda: _log(folder))]
    try:
        file = PartyFile.read(folder.path)
        consents = Consents(folder.path / CONSENT_FILE)
    except TacitError:
        return results
    studies = [offered for offered in consents.all() if offered.state == "in"]
    if not studies:
        results.append(_try("data", partial(_data_there, file)))
    for offered in studies:
        study = offered.read()
        told = f"the table fits {study.name!r}"
        results.append(_try("data", partial(_read_table, file, study, told)))
    consents.close()
    return results


def _data_there(file: PartyFile) -> str:
    file.data.check_there()
    return "no study was opted into, so the table was not looked at"


def _read_table(file: PartyFile, study: Study, told: str) -> str:
    file.data.open(study.schema, person=study.person)
    return told


def _party_file(folder: Path) -> str:
    PartyFile.read(folder)
    return "reads well"


def _log(folder: MemberFolder) -> str:
    book = AnchoredLedger(folder.path, folder.identity.name)
    try:
        n_lines = book.log.verify()
        n_releases = check_releases(book.ledger, book.log, folder.identity.name)
        return f"{n_lines} lines, whole and in order; {n_releases} releases, each with its line"
    finally:
        book.close()


def _keys(folder: Path, role: Role) -> str:
    if role == "coordinator":
        CoordinatorFolder(folder).close()
    else:
        MemberFolder.load(folder, role)
    mode = (folder / SECRET_FILE).stat().st_mode & 0o077
    if mode:
        return f"readable, but others may read {SECRET_FILE} too: chmod 600 it"
    return "readable by its owner alone"


def _certificate(path: Path) -> CheckResult:
    try:
        days = days_left(path)
    except TacitError as error:
        return CheckResult(what="certificate", is_well=False, told=str(error))
    told = f"{path.name} is valid for {days:.0f} more days" if days > 0 else f"{path.name} has expired"
    return CheckResult(
        what="certificate",
        is_well=days > _SOON_DAYS,
        told=told if days > _SOON_DAYS else f"{told}; run `tacit coordinator renew`",
    )


def _disk(folder: Path) -> CheckResult:
    free = shutil.disk_usage(folder).free
    well = free > _LEAST_DISK
    told = f"{free / (1 << 30):.1f} GB free"
    return CheckResult(
        what="disk", is_well=well, told=told if well else f"{told}; a ledger that is full answers nothing"
    )


def _try(what: str, look: Callable[[], str]) -> CheckResult:
    try:
        told = look()
    except TacitError as error:
        return CheckResult(what=what, is_well=False, told=str(error))
    return CheckResult(what=what, is_well="chmod" not in told, told=told)
