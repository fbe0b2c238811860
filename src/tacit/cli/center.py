"""`tacit center`: one node of the center."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.show import err, out
from tacit.daemon.joining import join
from tacit.daemon.node import NodeDesk, prepare_engine
from tacit.federation.net.acquaintance import Acquaintances
from tacit.federation.net.journal import Journal
from tacit.federation.net.place import Invitation, Place, fingerprints
from tacit.federation.net.station import Station, stop_on_signals

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
    invitation = Invitation.read(invite)
    place = join(invitation, folder)
    address = prepare_engine(folder, listen)
    out.print(f"joined as {place.identity.name}, seat {place.seat}, listening on {address}", markup=False)
    out.print("\n".join(fingerprints([place.member, place.pinned.coordinator])), markup=False)
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
    place = Place.load(folder, "center")
    if accept is Accept.ask:
        Acquaintances(folder).insist()
    elif accept is Accept.all:
        Acquaintances(folder).believe_all()
    asyncio.run(_serve(place))


async def _serve(place: Place) -> None:
    journal = Journal(place.identity.name)
    desk = NodeDesk(place, journal)
    try:
        await Station(place, desk, journal).serve(stop_on_signals())
    finally:
        desk.close()


@app.command("members")
def members(folder: Folder = FOLDER) -> None:
    """List the members whose keys this node pinned, with their fingerprints, to be compared by telephone.

    Examples:

      tacit center members
    """
    place = Place.load(folder, "center")
    acquaintances = Acquaintances(folder)
    known, believed = acquaintances.all(), acquaintances.keys()
    lines = fingerprints([place.pinned.coordinator, *known.values()])
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
    Place.load(folder, "center")
    out.print("accepted:\n" + "\n".join(fingerprints(Acquaintances(folder).accept(names))), markup=False)


@app.callback()
def center() -> None:
    """Run one node of the center."""
