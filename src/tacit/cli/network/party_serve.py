"""`tacit party serve`: the party's daemon, with its site if its owner wants one, and the site's password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, out
from tacit.cli.network.party_folder import FOLDER, Folder
from tacit.cli.network.serving import WebHost, WebListen, serve_until_stopped

if TYPE_CHECKING:  # whatever knows the methods is imported by the commands that need it
    from tacit.federation.member.folder import MemberFolder
    from tacit.federation.nats.journal import Journal
    from tacit.web.party.service import PartySite


def serve(
    folder: Folder = FOLDER,
    web: Annotated[bool, typer.Option("--web", help="Serve your own web site, too.")] = False,
    web_listen: WebListen = "127.0.0.1:8021",
    web_host: WebHost = None,
) -> None:
    """Answer the studies that you opted into, until Ctrl-C; one line of JSON for each event.

    With --web you read, decide and look things up in a browser on this machine. The first start prints a password.

    Examples:

      tacit party serve

      tacit party serve --web
    """
    from tacit.daemon.party.handler import PartyHandler
    from tacit.federation.member.folder import MemberFolder
    from tacit.federation.nats.journal import Journal
    from tacit.federation.nats.service import MemberService

    own = MemberFolder.load(folder, "party")
    journal = Journal(own.identity.name)
    handler = PartyHandler(own, journal)
    try:
        site = _open_site(own, web_listen, tuple(web_host or ()), journal) if web else None
        serve_until_stopped(MemberService(own, handler, journal).serve, site)
    finally:
        handler.close()


def password(folder: Folder = FOLDER) -> None:
    """Give the owner's account of your site a new password for one log-in; every session ends.

    Examples:

      tacit party password
    """
    from tacit.federation.member.folder import MemberFolder
    from tacit.web.account import ONE_TIME_DAYS
    from tacit.web.party.service import OWNER, new_password

    MemberFolder.load(folder, "party")
    out.print(f"account   {OWNER}")
    out.print(f"password  {new_password(folder)}")
    err.print(
        f"it is shown once, is good for {ONE_TIME_DAYS} days, and must be changed at the next log-in", soft_wrap=True
    )


def _open_site(own: MemberFolder, listen: str, names: tuple[str, ...], journal: Journal) -> PartySite:
    from tacit.web.account import ONE_TIME_DAYS
    from tacit.web.party.service import OWNER, PartySite, PartyWebWish

    site = PartySite(own, PartyWebWish(listen=listen, names=names), journal)
    err.print(f"your site: {site.url}", soft_wrap=True)
    if site.first_password is not None:
        err.print(
            f"log in as {OWNER} with the password {site.first_password}; it is shown once, and is good for "
            f"{ONE_TIME_DAYS} days",
            soft_wrap=True,
        )
    return site
