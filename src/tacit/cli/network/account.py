"""`tacit coordinator account`: who may use the coordinator's site."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import JsonOutput, err, out
from tacit.errors import SettingError

if TYPE_CHECKING:
    from tacit.web.account import Accounts
    from tacit.web.session import AuditTrail, SiteSessions

app = typer.Typer(help="Who may use the coordinator's site.", no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="The coordinator's folder.")]
FOLDER = Path("coordinator")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The account's name.")]
_WHO = "the command line"


@app.command("add")
def add(
    name: Name,
    role: Annotated[str, typer.Option(help="viewer, researcher, approver or administrator.")] = "viewer",
    email: Annotated[str, typer.Option(help="Where single sign-on knows it by its e-mail address.")] = "",
    folder: Folder = FOLDER,
) -> None:
    """Make an account and print its password for the first log-in, where it must be changed.

    Examples:

      tacit coordinator account add ada --role administrator
    """
    with _opened(folder) as (accounts, _, audit):
        password = accounts.add(name, role, email=email)  # type: ignore[arg-type]  # `add` checks the role
        audit.note(_WHO, f"made an account with the role {role}", name)
    out.print(f"account   {name} ({role})", markup=False)
    out.print(f"password  {password}", markup=False)
    _say_how_long("first")


@app.command("list")
def list_accounts(folder: Folder = FOLDER, json_output: JsonOutput = False) -> None:
    """List the accounts with their roles.

    Examples:

      tacit coordinator account list
    """
    from rich.table import Table

    columns, rows = ("name", "role", "e-mail", "state"), []
    with _opened(folder) as (accounts, _, _):
        for each in accounts.all():
            new = "its one-time password has expired" if each.is_expired else "has not logged in yet"
            state = "disabled" if each.disabled else new if each.must_change else ""
            rows.append((each.name, each.role, each.email, state))
    if json_output:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows]))
        return
    table = Table()
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    out.print(table)


@app.command("disable")
def disable(name: Name, folder: Folder = FOLDER) -> None:
    """Shut an account out; its sessions end at once.

    Examples:

      tacit coordinator account disable ada
    """
    with _opened(folder) as (accounts, sessions, audit):
        accounts.disable(name)
        sessions.end_all(name)
        audit.note(_WHO, "disabled an account", name)
    out.print(f"{name} is shut out; `tacit coordinator account reset {name}` lets it in again", markup=False)


@app.command("reset")
def reset(name: Name, folder: Folder = FOLDER) -> None:
    """Give an account a new password for one log-in, and let it in again if it was shut out.

    Examples:

      tacit coordinator account reset ada
    """
    with _opened(folder) as (accounts, sessions, audit):
        password = accounts.reset(name)
        accounts.disable(name, disabled=False)
        sessions.end_all(name)
        audit.note(_WHO, "reset a password", name)
    out.print(f"password  {password}", markup=False)
    _say_how_long("next")


def _say_how_long(which: str) -> None:
    from tacit.web.account import ONE_TIME_DAYS

    err.print(
        f"it is shown once, is good for {ONE_TIME_DAYS} days, and must be changed at the {which} log-in; hand it over "
        f"in confidence",
        markup=False,
        soft_wrap=True,
    )


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[Accounts, SiteSessions, AuditTrail]]:
    from tacit.federation.member.coordinator_folder import FACTS
    from tacit.web import store
    from tacit.web.account import Accounts
    from tacit.web.session import AuditTrail, SiteSessions

    if not (folder / FACTS).exists():
        raise SettingError(
            f"{folder} is not the folder of a coordinator; run `tacit coordinator init`, or name --folder"
        )
    database = store.open_store(folder / store.FILE)
    try:
        yield Accounts(database), SiteSessions(database), AuditTrail(database)
    finally:
        database.close()
