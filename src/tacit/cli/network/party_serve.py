"""`tacit party serve`: the party's daemon, with its site if its owner wants one, and the site's password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, out
from tacit.cli.network.party_folder import FOLDER, Folder

if TYPE_CHECKING:  # whatever knows the methods is imported by the commands that need it
    from tacit.daemon.party.handler import PartyHandler
    from tacit.federation.member.folder import MemberFolder
    from tacit.federation.nats.journal import Journal
    from tacit.web.party.service import PartySite


def serve(
    folder: Folder = FOLDER,
    web: Annotated[bool, typer.Option("--web", help="Serve your own web site, too.")] = False,
    web_listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the site listens; elsewhere than on this machine by TLS.")
    ] = "127.0.0.1:8021",
    web_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A host name under which browsers reach the site.")
    ] = None,
) -> None:
    """Answer the studies that you opted into, until Ctrl-C; one line of JSON for each event.

    With --web you read, decide and look things up in a browser on this machine. The first start prints a password.

    Examples:

      tacit party serve

      tacit party serve --web
    """
    import asyncio

    from tacit.daemon.party.handler import PartyHandler
    from tacit.federation.member.folder import MemberFolder
    from tacit.federation.nats.journal import Journal

    own = MemberFolder.load(folder, "party")
    journal = Journal(own.identity.name)
    handler = PartyHandler(own, journal)
    try:
        site = _open_site(own, web_listen, tuple(web_host or ()), journal) if web else None
        try:
            asyncio.run(_serve(own, handler, journal, site))
        finally:
            if site is not None:
                site.close()
    finally:
        handler.close()


def password(folder: Folder = FOLDER) -> None:
    """Give the owner's account of your site a new password for one log-in; every session ends.

    Examples:

      tacit party password
    """
    from tacit.federation.member.folder import MemberFolder
    from tacit.web.party.service import OWNER, new_password

    MemberFolder.load(folder, "party")
    out.print(f"account   {OWNER}")
    out.print(f"password  {new_password(folder)}")
    err.print("it is shown once and must be changed at the next log-in")


def _open_site(own: MemberFolder, listen: str, names: tuple[str, ...], journal: Journal) -> PartySite:
    from tacit.web.party.service import OWNER, PartySite, PartyWebWish

    site = PartySite(own, PartyWebWish(listen=listen, names=names), journal)
    err.print(f"your site: {site.url}", soft_wrap=True)
    if site.first_password is not None:
        err.print(f"log in as {OWNER} with the password {site.first_password}; it is shown once", soft_wrap=True)
    return site


async def _serve(own: MemberFolder, handler: PartyHandler, journal: Journal, site: PartySite | None) -> None:
    from tacit.federation.nats.service import MemberService, stop_on_signals

    stop = stop_on_signals()
    service = MemberService(own, handler, journal)
    if site is None:
        await service.serve(stop)
        return
    from tacit.web.serving import together

    await together(stop, service.serve(stop), site.serve(stop))
