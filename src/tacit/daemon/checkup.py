"""A check-up of one member: each finding says what was looked at, whether it is well, and what to do if it is not."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tacit.daemon.consent import FILE as CONSENT_FILE
from tacit.daemon.consent import Consents
from tacit.daemon.party_file import LEDGER, PartyFile
from tacit.data.schema import Schema
from tacit.errors import TacitError
from tacit.federation.log import Log
from tacit.federation.net import subject
from tacit.federation.net.certificate import AUTHORITY_CERTIFICATE, SERVER_CERTIFICATE, days_left
from tacit.federation.net.headquarters import Headquarters
from tacit.federation.net.identity import SECRET_FILE, Role
from tacit.federation.net.letter import MAX_SKEW, read_letter
from tacit.federation.net.link import Link
from tacit.federation.net.place import Place
from tacit.federation.net.server import find_server
from tacit.privacy.ledger import Ledger
from tacit.secure.share import N_NODES

_LEAST_DISK = 1 << 30
_SOON_DAYS = 30.0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    is_well: bool
    told: str


async def check_member(folder: Path, role: Role) -> list[Finding]:
    """A party or a center node."""
    findings = [_try("keys", lambda: _keys(folder, role)), _disk(folder)]
    try:
        place = Place.load(folder, role)
    except TacitError:
        return findings
    findings += await _connection(place)
    findings.append(
        Finding(
            what="center",
            is_well=role == "center" or len(place.pinned.center) == N_NODES,
            told=f"{len(place.pinned.center)} of {N_NODES} nodes' keys are pinned"
            + ("" if len(place.pinned.center) == N_NODES or role == "center" else "; no sum can be sealed: join again"),
        )
    )
    if role == "party":
        findings += _party(place)
    return findings


async def check_coordinator(folder: Path) -> list[Finding]:
    """The coordinator."""
    findings = [
        _try("keys", lambda: _keys(folder, "coordinator")),
        _try("program", find_server),
        _disk(folder),
        *(_certificate(folder / name) for name in (AUTHORITY_CERTIFICATE, SERVER_CERTIFICATE)),
    ]
    try:
        headquarters = Headquarters(folder)
    except TacitError:
        return findings
    nodes, parties = headquarters.roster.members("center"), headquarters.roster.members("party")
    told = f"{len(parties)} parties, {len(nodes)} of {N_NODES} center nodes"
    findings.append(Finding(what="members", is_well=len(nodes) == N_NODES and bool(parties), told=told))
    link = Link(headquarters.address, headquarters.credential)
    try:
        await link.open(seconds=3.0)
        info = await link.client.jetstream().streams_info()
        kept = {stream.config.name for stream in info} >= {stream.name for stream in subject.STREAMS}
        findings.append(Finding(what="connection", is_well=True, told=headquarters.address.url))
        findings.append(
            Finding(
                what="storage",
                is_well=kept,
                told="questions, answers and studies are kept" if kept else "start `tacit coordinator serve` once",
            )
        )
    except TacitError as error:
        findings.append(Finding(what="connection", is_well=False, told=str(error)))
    finally:
        await link.close()
        headquarters.close()
    return findings


async def _connection(place: Place) -> list[Finding]:
    link = Link(place.pinned.address, place.credential)
    name = place.identity.name
    try:
        await link.open(seconds=3.0)
    except TacitError as error:
        return [Finding(what="connection", is_well=False, told=str(error))]
    try:
        findings = [Finding(what="connection", is_well=True, told=place.pinned.address.url)]
        findings.append(await _certificate_left(link))
        findings.append(await _permissions(link, name))
        findings.append(await _clock(link, place))
        return findings
    finally:
        await link.close()


async def _permissions(link: Link, name: str) -> Finding:
    """Somebody else's subject must be refused by the server."""
    refused = await link.is_refused("tacit.ask.nobody-but-the-owner-of-this-name")
    told = f"{name} hears its own subjects only" if refused else (
        "the server lets this key hear other parties' questions; its configuration is not Tacit's members.conf"
    )  # fmt: skip
    return Finding(what="permissions", is_well=refused, told=told)


async def _clock(link: Link, place: Place) -> Finding:
    """Compare this clock with the coordinator's."""
    name = place.identity.name
    try:
        reply = await link.request(subject.CLOCK, name.encode(), seconds=3.0)
        letter = read_letter(bytes(reply.data), sender=place.pinned.coordinator, recipient=name, kinds=("clock",))
    except TacitError:
        return Finding(what="clock", is_well=False, told="the coordinator does not answer; is its daemon running?")
    difference = time.time() - letter.time
    well = abs(difference) < MAX_SKEW / 2
    told = f"{difference:+.1f} s from the coordinator's"
    return Finding(what="clock", is_well=well, told=told if well else f"{told}; set both clocks (NTP)")


async def _certificate_left(link: Link) -> Finding:
    days = link.certificate_days()
    well = days is None or days > _SOON_DAYS
    told = "valid" if days is None else f"the server's is valid for {days:.0f} more days"
    return Finding(what="certificate", is_well=well, told=told + ("" if well else "; the coordinator must renew it"))


def _party(place: Place) -> list[Finding]:
    findings = [_try("party.toml", lambda: _party_file(place.folder)), _try("log", lambda: _log(place))]
    try:
        file = PartyFile.read(place.folder)
        consents = Consents(place.folder / CONSENT_FILE)
    except TacitError:
        return findings
    studies = [known for known in consents.all() if known.state == "in"]
    if not studies:
        told = "no study was opted into, so the table was not looked at"
        findings.append(Finding(what="data", is_well=True, told=told))
    for known in studies:
        study = known.read()
        told = f"the table fits {study.name!r}"
        findings.append(_try("data", partial(_read_table, file, study.schema, told)))
    consents.close()
    return findings


def _read_table(file: PartyFile, schema: Schema, told: str) -> str:
    file.data.open(schema)
    return told


def _party_file(folder: Path) -> str:
    PartyFile.read(folder)
    return "reads well"


def _log(place: Place) -> str:
    ledger = Ledger(place.folder / LEDGER)
    try:
        return f"{Log(ledger, place.identity.name).verify()} lines, whole and in order"
    finally:
        ledger.close()


def _keys(folder: Path, role: Role) -> str:
    if role == "coordinator":
        Headquarters(folder).close()
    else:
        Place.load(folder, role)
    mode = (folder / SECRET_FILE).stat().st_mode & 0o077
    if mode:
        return f"readable, but others may read {SECRET_FILE} too: chmod 600 it"
    return "readable by its owner alone"


def _certificate(path: Path) -> Finding:
    try:
        days = days_left(path)
    except TacitError as error:
        return Finding(what="certificate", is_well=False, told=str(error))
    told = f"{path.name} is valid for {days:.0f} more days" if days > 0 else f"{path.name} has expired"
    return Finding(
        what="certificate",
        is_well=days > _SOON_DAYS,
        told=told if days > _SOON_DAYS else f"{told}; run `tacit coordinator renew`",
    )


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    well = free > _LEAST_DISK
    told = f"{free / (1 << 30):.1f} GB free"
    return Finding(what="disk", is_well=well, told=told if well else f"{told}; a ledger that is full answers nothing")


def _try(what: str, look: Callable[[], str]) -> Finding:
    try:
        told = look()
    except TacitError as error:
        return Finding(what=what, is_well=False, told=str(error))
    return Finding(what=what, is_well="chmod" not in told, told=told)
