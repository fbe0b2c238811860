"""`tacit center`: one node of the center."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, out

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
            "believe every party that the coordinator tells of. The choice is kept; the first is all."
        ),
    ] = None,
) -> None:
    """Add up what parties seal, until Ctrl-C; one line of JSON for each event.

    Examples:

      tacit center serve

      tacit center serve --accept ask
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
def members(folder: Folder = FOLDER) -> None:
    """List the members whose keys this node pinned, with their fingerprints, to be compared by telephone.

    Examples:

      tacit center members
    """
    from tacit.federation.member.folder import MemberFolder, fingerprints
    from tacit.federation.member.known_members import KnownMembers

    own = MemberFolder.load(folder, "center")
    known_members = KnownMembers(folder)
    known, believed = known_members.all(), known_members.keys()
    lines = fingerprints([own.pinned.coordinator, *known.values()])
    for number, member in enumerate(known.values(), start=1):
        if member.role == "party" and member.name not in believed:
            lines[number] += "  not accepted yet"
    out.print("\n".join(lines), markup=False, soft_wrap=True)


@app.command("accept")
def accept(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Parties whose fingerprints you compared.")],
    folder: Folder = FOLDER,
) -> None:
    """Let this node add up what these parties seal, where it waits for your word (`serve --accept ask`).

    Examples:

      tacit center accept north south
    """
    from tacit.federation.member.folder import MemberFolder, fingerprints
    from tacit.federation.member.known_members import KnownMembers

    MemberFolder.load(folder, "center")
    out.print("accepted:\n" + "\n".join(fingerprints(KnownMembers(folder).accept(names))), markup=False)


@app.callback()
def center() -> None:
    """Run one node of the center."""
