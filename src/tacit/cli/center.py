"""`tacit center`: one node of the center."""

from __future__ import annotations

import asyncio
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


@app.command("serve")
def serve(folder: Folder = FOLDER) -> None:
    """Add up what parties seal, until Ctrl-C; one line of JSON for each event.

    Examples:

      tacit center serve
    """
    asyncio.run(_serve(Place.load(folder, "center")))


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
    known = Acquaintances(folder).all()
    out.print("\n".join(fingerprints([place.pinned.coordinator, *known.values()])), markup=False, soft_wrap=True)


@app.callback()
def center() -> None:
    """Run one node of the center."""
