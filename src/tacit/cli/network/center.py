"""`tacit center`: one node of the center."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import JsonOutput, err, out
from tacit.cli.network.acceptance import accept_parties

if TYPE_CHECKING:
    from tacit.federation.member.folder import MemberFolder

app = typer.Typer(help="Run one node of the center.", no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="The node's folder.")]
FOLDER = Path("center")


@app.command("init")
def init(
    invite: Annotated[Path, typer.Option("--invite", metavar="FILE", help="The invitation from the coordinator.")],
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where the other nodes reach this one; the default is this machine."),
    ] = None,
    folder: Folder = FOLDER,
) -> None:
    """Join a federation as a center node: make its keys, which never leave this folder.

    Examples:

      tacit center init --invite node-a.invite

      tacit center init --invite node-a.invite --listen node-a.example.org:9001
    """
    from tacit.daemon.center.handler import prepare_engine
    from tacit.daemon.coordinator.joining import join
    from tacit.federation.member.folder import fingerprints
    from tacit.federation.member.invitation import Invitation

    invitation = Invitation.read(invite)
    own = join(invitation, folder)
    address = prepare_engine(folder, listen)
    out.print(f"joined as {own.identity.name}, seat {own.seat}, listening on {address}", markup=False)
    out.print("\n".join(fingerprints([own.member, own.pinned.coordinator])), markup=False)
    err.print(f"next: tacit center serve --folder {folder}", markup=False)


class Accept(StrEnum):
    """Whom a node believes."""

    all = "all"
    ask = "ask"


@app.command("serve")
def serve(
    folder: Folder = FOLDER,
    accept: Annotated[
        Accept | None,
        typer.Option(
            help="ask: add up nothing of a party before you accepted its fingerprint (`tacit center accept`); all: "
            "believe every party that the coordinator tells of. The choice is kept; the first is ask."
        ),
    ] = None,
) -> None:
    """Add up what parties seal, until Ctrl-C; one line of JSON for each event.

    Examples:

      tacit center serve

      tacit center serve --accept all
    """
    import asyncio

    from tacit.federation.member.folder import MemberFolder
    from tacit.federation.member.known_members import KnownMembers

    own = MemberFolder.load(folder, "center")
    if accept is Accept.ask:
        KnownMembers(folder).insist()
    elif accept is Accept.all:
        KnownMembers(folder).believe_all()
    asyncio.run(_serve(own))


async def _serve(own: MemberFolder) -> None:
    from tacit.daemon.center.handler import NodeHandler
    from tacit.federation.nats.journal import Journal
    from tacit.federation.nats.service import MemberService, stop_on_signals

    journal = Journal(own.identity.name)
    handler = NodeHandler(own, journal)
    try:
        await MemberService(own, handler, journal).serve(stop_on_signals())
    finally:
        handler.close()


@app.command("members")
def members(folder: Folder = FOLDER, json_output: JsonOutput = False) -> None:
    """List the members whose keys this node pinned, with their fingerprints, to be compared by telephone.

    Examples:

      tacit center members
    """
    from tacit.cli.network.membership import show_standing, standing
    from tacit.federation.member.folder import MemberFolder, fingerprints
    from tacit.federation.member.known_members import KnownMembers

    own = MemberFolder.load(folder, "center")
    known_members = KnownMembers(folder)
    known, believed = known_members.all(), known_members.keys()
    if json_output:
        waiting = sorted(name for name, one in known.items() if one.role == "party" and one.name not in believed)
        told = standing(folder, [own.pinned.coordinator, *known.values()])
        print(json.dumps(told | {"not_accepted_yet": waiting}))
        return
    lines = fingerprints([own.pinned.coordinator, *known.values()])
    for number, member in enumerate(known.values(), start=1):
        if member.role == "party" and member.name not in believed:
            lines[number] += "  not accepted yet"
    out.print("\n".join(lines), markup=False, soft_wrap=True)
    show_standing(folder)


@app.command("accept")
def accept(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME=FINGERPRINT...", help="Parties, with what they told you by telephone."),
    ],
    folder: Folder = FOLDER,
) -> None:
    """Let this node add up what these parties seal. On a terminal a name alone shows the fingerprint and asks.

    Examples:

      tacit center accept "north=1f0c 22d1 9a3b 0e5f 7c66 81b2 d4e0 5a97"

      tacit center accept north
    """
    from tacit.federation.member.folder import MemberFolder, fingerprints

    MemberFolder.load(folder, "center")
    out.print("accepted:\n" + "\n".join(fingerprints(accept_parties(folder, names))), markup=False)


@app.command("accept-key")
def accept_key(
    name: Annotated[str, typer.Argument(help="A member whose keys `members` shows as not believed.")],
    fingerprint: Annotated[str, typer.Argument(help="Its fingerprint, as it told you by telephone, in quotes.")],
    folder: Folder = FOLDER,
) -> None:
    """Believe a member with keys that the coordinator tells of, and that its old keys did not sign.

    Examples:

      tacit center accept-key south "0f3a 91bc 77de 20aa 4c51 9e08 b6f2 d3c4"
    """
    from tacit.cli.network import membership

    membership.accept_key(folder, "center", name, fingerprint)


@app.command("rotate-key")
def rotate_key(folder: Folder = FOLDER) -> None:
    """Make new keys, signed with the old ones, so that the others follow; then start `serve` again.

    Examples:

      tacit center rotate-key
    """
    from tacit.cli.network import membership

    membership.rotate_key(folder, "center")


@app.command("ledgers")
def ledgers(folder: Folder = FOLDER, json_output: JsonOutput = False) -> None:
    """List the parties' ledgers as this node saw them last: how much each has sealed, and the head of its log.

    An owner compares the head with `tacit party log --verify --head HASH`: it must be there.

    Examples:

      tacit center ledgers
    """
    from tacit.federation.member.folder import MemberFolder
    from tacit.secure.center.memory import FILE, Memory

    MemberFolder.load(folder, "center")
    found = Memory(folder / FILE).ledgers.all()
    if json_output:
        print(json.dumps({seen.party: asdict(seen.mark) for seen in found}))
        return
    for seen in found:
        mark = seen.mark
        line = f"{seen.party:<20} ledger {mark.epoch[:12]}  sealed {mark.number}  line {mark.line}  head {mark.head}"
        out.print(line, markup=False, soft_wrap=True)


@app.command("accept-ledger")
def accept_ledger(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Parties whose owners told you of a loss.")],
    folder: Folder = FOLDER,
) -> None:
    """Let parties go on with a new ledger, where the old one was lost for good; the old one is refused from then on.

    What such a party answered before it may answer again, with fresh noise. Ask its owner by telephone first.

    Examples:

      tacit center accept-ledger north
    """
    from tacit.federation.member.folder import MemberFolder
    from tacit.secure.center.memory import FILE, Memory

    MemberFolder.load(folder, "center")
    watch = Memory(folder / FILE).ledgers
    for name in names:
        watch.accept_new(name)
    out.print(f"the next ledger of {', '.join(names)} is taken", markup=False)


@app.callback()
def center() -> None:
    """Run one node of the center."""
