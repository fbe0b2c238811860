"""`tacit coordinator`: the federation's message server, its members and its studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import JsonOutput, err, out, working
from tacit.cli.network import account
from tacit.cli.network.account import FOLDER, Folder
from tacit.cli.network.serving import WebHost, WebListen, serve_until_stopped

if TYPE_CHECKING:
    from tacit.federation.member.coordinator_folder import CoordinatorFolder
    from tacit.federation.member.identity import Role

app = typer.Typer(help="Run a federation: server, members, studies.", no_args_is_help=True, rich_markup_mode=None)

app.add_typer(account.app, name="account")


@app.command("init")
def init(
    folder: Folder = FOLDER,
    host: Annotated[
        str, typer.Option(help="Where the server listens; the default is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port that it listens on.")] = 4222,
    url: Annotated[
        str | None, typer.Option(metavar="tls://HOST:PORT", help="How members reach it, if not where it listens.")
    ] = None,
    servers: Annotated[
        str | None, typer.Option(metavar="tls://A:PORT,tls://B:PORT,...", help="Servers of your own NATS cluster.")
    ] = None,
    server_name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name by which those servers reach each other.")
    ] = None,
    reload: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="What brings a change of members to those servers.")
    ] = None,
) -> None:
    """Make a federation: its certificate authority, the coordinator's keys and the server's configuration.

    Examples:

      tacit coordinator init

      tacit coordinator init --host 0.0.0.0 --url tls://tacit.example.org:4222

      tacit coordinator init --servers tls://a.example.org:4222,tls://b.example.org:4222,tls://c.example.org:4222
    """
    from tacit.errors import SettingError
    from tacit.federation.member.coordinator_folder import CoordinatorFolder
    from tacit.federation.nats.server import ServerSettings

    if servers is None and (reload is not None or server_name):
        raise SettingError("--reload and --server-name are for servers that others run; name them with --servers")
    if servers is None:
        made = CoordinatorFolder.make(folder, ServerSettings(host=host, port=port), url)
    else:
        made = CoordinatorFolder.make_on_cluster(folder, servers.split(","), reload, server_name or ())
        out.print(f"what the servers read is in {folder / 'cluster'}; start them with it", markup=False)
    made.close()
    out.print(f"made {folder}; its key is in {folder / 'identity.key'}: keep it, and show it to nobody", markup=False)
    out.print(f"fingerprint  {made.identity.member.fingerprint}", markup=False)
    err.print(f"next: tacit coordinator serve --folder {folder}", markup=False)


@app.command("serve")
def serve(
    folder: Folder = FOLDER,
    web: Annotated[bool, typer.Option("--web", help="Serve the web site, too.")] = False,
    web_listen: WebListen = "127.0.0.1:8020",
    web_host: WebHost = None,
    web_public: Annotated[
        bool, typer.Option("--web-public", help="Show published studies to everybody, not to members alone.")
    ] = False,
) -> None:
    """Run the message server and let in whoever was invited, until Ctrl-C; one line of JSON for each event.

    Examples:

      tacit coordinator serve

      tacit coordinator serve --web

      tacit coordinator serve --web --web-listen 0.0.0.0:443 --web-host tacit.example.org
    """
    from tacit.daemon.coordinator.server import CoordinatorDaemon
    from tacit.federation.member.coordinator_folder import CoordinatorFolder
    from tacit.federation.nats.journal import Journal

    coordinator, journal = CoordinatorFolder(folder), Journal("coordinator")
    try:
        daemon, site = CoordinatorDaemon(coordinator, journal), None
        if web:
            from tacit.web.coordinator.service import CoordinatorSite, WebWish

            site = CoordinatorSite(
                folder, WebWish(listen=web_listen, names=tuple(web_host or ()), is_public=web_public), journal
            )
            daemon.on_consent = site.operations.consented
        serve_until_stopped(daemon.serve, site)
    finally:
        coordinator.close()


@app.command("invite")
def invite(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="New members: lower-case letters, digits, - and _.")
    ],
    folder: Folder = FOLDER,
    center: Annotated[bool, typer.Option("--center", help="Invite center nodes, not parties.")] = False,
    days: Annotated[float, typer.Option(help="How long an invitation is good.")] = 7.0,
    without_center: Annotated[
        bool, typer.Option("--without-center", help="Invite parties although no center can add up what they seal.")
    ] = False,
    out_dir: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where to write NAME.invite; the default is here.")
    ] = Path(),
) -> None:
    """Write invitations: each a file that admits one member, once. Hand it over in confidence.

    Examples:

      tacit coordinator invite node-a node-b node-c --center

      tacit coordinator invite north
    """
    from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
    from tacit.storage import OWNER_ONLY, write_whole

    role: Role = "center" if center else "party"
    coordinator = CoordinatorFolder(folder)
    try:
        for name in names:
            made = coordinator.invite(Invite(name=name, role=role, days=days, without_center=without_center))
            path = out_dir / f"{name}.invite"
            # An earlier one in its place goes: a second invitation makes the first one void.
            write_whole(path, made.text(), mode=OWNER_ONLY)
            out.print(f"wrote {path}: good once, for {days:g} days", markup=False)
    finally:
        coordinator.close()
    err.print(f"there: tacit {role} init --invite {names[0]}.invite", markup=False)


@app.command("revoke")
def revoke(name: Annotated[str, typer.Argument(help="A member's name.")], folder: Folder = FOLDER) -> None:
    """Shut a member out: its connection is cut at once, its name is not given again, and the others hear of it.

    Examples:

      tacit coordinator revoke north
    """
    from tacit.federation.member.coordinator_folder import CoordinatorFolder

    coordinator = CoordinatorFolder(folder)
    try:
        coordinator.revoke(name)
    finally:
        coordinator.close()
    out.print(f"{name} is shut out", markup=False)


@app.command("members")
def members(folder: Folder = FOLDER, json_output: JsonOutput = False) -> None:
    """List the members with their fingerprints, to be compared by telephone.

    Examples:

      tacit coordinator members
    """
    from rich.table import Table

    from tacit.federation.member.coordinator_folder import CoordinatorFolder

    coordinator = CoordinatorFolder(folder)
    columns = ("name", "role", "fingerprint", "state")
    own = coordinator.identity.member
    rows = [(own.name, own.role, own.fingerprint, "")]
    for revoked in (False, True):
        for member in coordinator.roster.members(revoked=revoked):
            rows.append((member.name, member.role, member.fingerprint, "revoked" if revoked else ""))
    coordinator.close()
    if json_output:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows]))
        return
    table = Table()
    for column in columns:
        table.add_column(column, no_wrap=column == "fingerprint")
    for row in rows:
        table.add_row(*row)
    out.print(table)


@app.command("announce")
def announce(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    folder: Folder = FOLDER,
    approval: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="What `tacit approver sign` wrote; may be repeated.")
    ] = None,
) -> None:
    """Show a study to every party, so that they can opt in; `tacit run` does this too.

    Approvals are kept, and go with the study from then on. A party verifies them itself.

    Examples:

      tacit coordinator announce study.toml

      tacit coordinator announce study.toml --approval heart.approval
    """
    # The methods are imported for this command alone: the daemon starts without them.
    from tacit.daemon.coordinator.study_run import offer_of
    from tacit.federation.member.coordinator_folder import CoordinatorFolder
    from tacit.federation.nats.blocking import BlockingConnection
    from tacit.methods import METHODS
    from tacit.studies.study import Study

    asked = Study.read(study, known_methods=METHODS)
    coordinator = CoordinatorFolder(folder)
    for path in approval or ():
        keep_approval(coordinator, path, asked.digest())
    approvals = coordinator.announced.approvals(asked.digest())
    with working("announcing"), BlockingConnection(coordinator) as connection:
        connection.announce(offer_of(asked, approvals))
    coordinator.close()
    out.print(f"announced {asked.name}, digest {asked.digest()}", markup=False, soft_wrap=True)


def keep_approval(coordinator: CoordinatorFolder, path: Path, digest: str) -> None:
    """Keep the approval in a file, if it is of the study with this digest."""
    from tacit.errors import SettingError
    from tacit.federation.member.approval import Approval

    try:
        approval = Approval.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} cannot be read ({type(error).__name__}); check the path") from error
    if approval.study != digest:
        raise SettingError(f"{path} approves the study {approval.study[:12]}, and this one is {digest[:12]}")
    coordinator.announced.approve(approval)


@app.command("renew")
def renew(folder: Folder = FOLDER) -> None:
    """Make a new certificate for the message server, of the same authority, before the old one expires.

    Examples:

      tacit coordinator renew
    """
    from tacit.federation.member.coordinator_folder import CoordinatorFolder

    coordinator = CoordinatorFolder(folder)
    coordinator.renew()
    coordinator.close()
    out.print("the server has a new certificate", markup=False)


@app.callback()
def coordinator() -> None:
    """Run a federation: server, members, studies."""
