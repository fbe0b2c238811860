"""What a data owner asks of the ledger: what the records have cost, what was decided, and a new one after a loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import err, out
from tacit.cli.network.party_folder import FOLDER, Folder, opened


def ledger(
    folder: Folder = FOLDER,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw what was spent, too.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Tell what your records have cost, in each study and in all.

    Examples:

      tacit party ledger --plot spent.svg
    """
    from tacit.daemon.party.anchor import open_ledger
    from tacit.daemon.party.owner_text import ledger_lines, spending_plot
    from tacit.daemon.party.settings import PartyFile
    from tacit.storage import write_whole

    own, _ = opened(folder)
    budget = PartyFile.read(folder).policy.budget
    book = open_ledger(folder, own.identity.name)
    name = book.sole_account(own.identity.name)
    delta, relation = budget.delta, budget.relation
    spent = {study: book.epsilon(name, delta=delta, study=study, relation=relation) for study in book.studies(name)}
    in_all = book.epsilon(name, delta=delta, relation=relation)
    if plot is not None:
        write_whole(plot, spending_plot(spent, budget))
    if json_output:
        finite = {study: value if value < float("inf") else None for study, value in spent.items()}
        told = {"studies": finite, "in_all": in_all if in_all < float("inf") else None, "delta": budget.delta}
        print(json.dumps(told))
        return
    counts = {study: book.n_releases(name, study) for study in spent}
    out.print("\n".join(ledger_lines(spent, in_all, budget, counts)), markup=False)


def log(
    folder: Folder = FOLDER,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the chain of hashes, and every release against it.")
    ] = False,
    head: Annotated[str | None, typer.Option(metavar="HASH", help="A hash that you kept; it must be there.")] = None,
) -> None:
    """Show every decision of your guard, oldest first, and the hash over all of them: keep it elsewhere.

    Examples:

      tacit party log

      tacit party log --verify
    """
    from tacit.daemon.party.anchor import AnchoredLedger
    from tacit.federation.log_check import check_releases

    own, _ = opened(folder)
    book = AnchoredLedger(folder, own.identity.name)
    entries = book.log
    if verify or head is not None:
        n_lines = entries.verify(head)
        n_releases = check_releases(book.ledger, entries, own.identity.name)
        out.print(f"{n_lines} lines, whole and in order; head {entries.head()}", markup=False, soft_wrap=True)
        out.print(f"{n_releases} releases, each with its line", markup=False)
        return
    for line in entries.lines():
        print(line.number, line.text)
    print(f"head {entries.head()}")


def abandon_ledger(
    folder: Folder = FOLDER,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Begin a new ledger where the old one is lost for good. What your records have cost is then forgotten.

    Old questions would get fresh noise, which averages out. So each center node refuses the new ledger until its
    operator accepts it (`tacit center accept-ledger`): tell all of them by telephone. Stop `tacit party serve` first.

    Examples:

      tacit party abandon-ledger
    """
    from tacit.daemon.party import anchor

    own, _ = opened(folder)
    if not yes:
        typer.confirm("Forget what your records have cost so far?", abort=True)
    aside = anchor.abandon_ledger(folder, own.identity.name)
    kept = f"; the old one is kept as {aside}" if aside is not None else ""
    out.print(f"a new ledger begins{kept}", markup=False, soft_wrap=True)
    err.print(f"next, at every center node: tacit center accept-ledger {own.identity.name}", markup=False)
