"""`tacit party`: what a data owner runs, reads and decides."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, out
from tacit.daemon import DEFAULT_RUNS
from tacit.errors import PolicyRefusal, SettingError

if TYPE_CHECKING:  # whatever knows the methods is imported by the commands that need it: joining does not
    from tacit.daemon.party.consent import Consents, OfferedStudy
    from tacit.daemon.party.handler import PartyHandler
    from tacit.federation.member.folder import MemberFolder
    from tacit.federation.member.identity import Member
    from tacit.federation.nats.journal import Journal

app = typer.Typer(help="Take part in a federation with your own data.", no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="The party's folder.")]
Named = Annotated[str, typer.Argument(metavar="STUDY", help="A name from `tacit party studies`, or a study file.")]
FOLDER = Path("party")


@app.command("init")
def init(
    invite: Annotated[Path, typer.Option("--invite", metavar="FILE", help="The invitation from the coordinator.")],
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="Your records: CSV, TSV or Parquet.")] = None,
    query: Annotated[str | None, typer.Option(metavar="SQL", help="Or a query that gives them.")] = None,
    database: Annotated[
        str | None, typer.Option(help="The query's database: a DuckDB file, sqlite:PATH or postgres:DSN.")
    ] = None,
    folder: Folder = FOLDER,
) -> None:
    """Join a federation: make this party's keys, which never leave this folder, and its party.toml.

    Examples:

      tacit party init --invite north.invite --data north.csv

      tacit party init --invite north.invite --query "SELECT * FROM visits" --database sqlite:clinic.db
    """
    from tacit.daemon.coordinator.joining import join
    from tacit.daemon.party.settings import FILE, LEDGER, DataSource, write_party_file
    from tacit.federation.member.folder import fingerprints
    from tacit.federation.member.invitation import Invitation
    from tacit.privacy.ledger import Ledger

    source = DataSource(file=data, query=query, database=database)
    own = join(Invitation.read(invite), folder)
    write_party_file(folder, source)
    Ledger(folder / LEDGER).close()
    out.print(f"joined as {own.identity.name}; what you allow is in {folder / FILE}", markup=False)
    everybody = [own.member, own.pinned.coordinator, *own.pinned.center]
    out.print("compare these by telephone:\n" + "\n".join(fingerprints(everybody)), markup=False)
    err.print(f"next: tacit party serve --folder {folder}", markup=False)


@app.command("serve")
def serve(folder: Folder = FOLDER) -> None:
    """Answer the studies that you opted into, until Ctrl-C; one line of JSON for each event.

    Examples:

      tacit party serve
    """
    import asyncio

    from tacit.daemon.party.handler import PartyHandler
    from tacit.federation.member.folder import MemberFolder
    from tacit.federation.nats.journal import Journal

    own = MemberFolder.load(folder, "party")
    journal = Journal(own.identity.name)
    handler = PartyHandler(own, journal)
    try:
        asyncio.run(_serve(own, handler, journal))
    finally:
        handler.close()


async def _serve(own: MemberFolder, handler: PartyHandler, journal: Journal) -> None:
    from tacit.federation.nats.service import MemberService, stop_on_signals

    await MemberService(own, handler, journal).serve(stop_on_signals())


@app.command("studies")
def studies(
    folder: Folder = FOLDER,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Tell what is asked of you, in plain words: who asks, which columns, what leaves, what it costs, who sees what.

    Examples:

      tacit party studies
    """
    from tacit.daemon.party.owner_text import study_lines
    from tacit.daemon.party.settings import PartyFile

    own, consents = _opened(folder)
    offered = consents.all()
    if json_output:
        told = {
            study.digest: {"name": study.read().name, "state": study.state, "runs": study.runs} for study in offered
        }
        print(json.dumps(told))
        return
    if not offered:
        out.print("no study was announced yet", markup=False)
    policy = PartyFile.read(folder).policy
    for study in offered:
        out.print("\n".join(study_lines(study, own, policy)) + "\n", markup=False, soft_wrap=True)


@app.command("opt-in")
def opt_in(
    studies: Annotated[
        list[str], typer.Argument(metavar="STUDY...", help="Names from `tacit party studies`, or study files.")
    ],
    folder: Folder = FOLDER,
    runs: Annotated[int, typer.Option(help="How many runs you allow; one that loses a party starts again.")] = (
        DEFAULT_RUNS
    ),
) -> None:
    """Take part in studies. What you consent to is a study's digest: a changed study is another one.

    Examples:

      tacit party opt-in heart

      tacit party opt-in study.toml --runs 1
    """
    from tacit.daemon.party.handler import study_policy
    from tacit.daemon.party.owner_text import why_not
    from tacit.daemon.party.settings import FILE, PartyFile
    from tacit.federation.member.known_members import KnownMembers

    own, consents = _opened(folder)
    policy = PartyFile.read(folder).policy
    wanted = [_found(study, consents) for study in studies]
    for offered in wanted:
        if reason := why_not(offered, policy):
            raise PolicyRefusal(
                f"your own policy forbids {offered.read().name!r}: {reason}. Change {folder / FILE} first"
            )
    others = {name: member for name, member in KnownMembers(folder).parties().items() if name != own.identity.name}
    for offered in wanted:
        named = offered.read().federation.parties
        sum_group = {name: others[name] for name in (others if named is None else named) if name in others}
        consents.decide(offered.digest, "in", runs, {name: member.letter_key for name, member in sum_group.items()})
        limit = study_policy(policy, replace(offered, runs=runs)).budget.epsilon_per_study
        cost = f"at most epsilon {limit:.4g}" if math.isfinite(limit) else "no epsilon bounds what it costs"
        line = f"in: {offered.read().name}, digest {offered.digest}; {runs} runs, {cost}"
        out.print(line, markup=False, soft_wrap=True)
        out.print("\n".join(_sum_group_lines(sum_group, named)), markup=False, soft_wrap=True)


def _sum_group_lines(sum_group: Mapping[str, Member], named: Sequence[str] | None) -> list[str]:
    """Whom a consent lets in, and who is missing."""
    from tacit.federation.member.folder import fingerprints

    if not sum_group:
        return ["  no other party is known here yet, so nothing is added up: keep `tacit party serve` up, opt in again"]
    missing = [name for name in named or () if name not in sum_group]
    lines = ["  you may be added up with these, and nobody else; compare them by telephone:"]
    lines += [f"  {line}" for line in fingerprints(list(sum_group.values()))]
    return lines + ([f"  not known here yet: {', '.join(missing)}; opt in again when they are"] if missing else [])


@app.command("opt-out")
def opt_out(study: Named, folder: Folder = FOLDER) -> None:
    """Leave a study, at any time: from the next round on nothing leaves; what was spent stays spent.

    Examples:

      tacit party opt-out heart
    """
    _, consents = _opened(folder)
    offered = _found(study, consents)
    consents.decide(offered.digest, "out")
    out.print(f"out: {offered.read().name}, digest {offered.digest}", markup=False, soft_wrap=True)


@app.command("ledger")
def ledger(
    folder: Folder = FOLDER,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw what was spent, too.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Tell what your records have cost, in each study and in all.

    Examples:

      tacit party ledger --plot spent.svg
    """
    from tacit.daemon.party.owner_text import ledger_lines, spending_plot
    from tacit.daemon.party.settings import LEDGER, PartyFile
    from tacit.privacy.ledger import Ledger
    from tacit.storage import write_whole

    own, _ = _opened(folder)
    budget = PartyFile.read(folder).policy.budget
    book = Ledger(folder / LEDGER)
    name = own.identity.name
    spent = {study: book.epsilon(name, delta=budget.delta, study=study) for study in book.studies(name)}
    in_all = book.epsilon(name, delta=budget.delta)
    if plot is not None:
        write_whole(plot, spending_plot(spent, budget))
    if json_output:
        finite = {study: value if value < float("inf") else None for study, value in spent.items()}
        told = {"studies": finite, "in_all": in_all if in_all < float("inf") else None, "delta": budget.delta}
        print(json.dumps(told))
        return
    counts = {study: book.n_releases(name, study) for study in spent}
    out.print("\n".join(ledger_lines(spent, in_all, budget, counts)), markup=False)


@app.command("log")
def log(
    folder: Folder = FOLDER,
    verify: Annotated[bool, typer.Option("--verify", help="Check the chain of hashes instead.")] = False,
    head: Annotated[str | None, typer.Option(metavar="HASH", help="A hash that you kept; it must be there.")] = None,
) -> None:
    """Show every decision of your guard, oldest first, and the hash over all of them: keep it elsewhere.

    Examples:

      tacit party log

      tacit party log --verify
    """
    from tacit.daemon.party.settings import LEDGER
    from tacit.federation.log import Log
    from tacit.privacy.ledger import Ledger

    own, _ = _opened(folder)
    entries = Log(Ledger(folder / LEDGER), own.identity.name)
    if verify or head is not None:
        out.print(f"{entries.verify(head)} lines, whole and in order; head {entries.head()}", markup=False)
        return
    for line in entries.lines():
        print(line.number, line.text)
    print(f"head {entries.head()}")


@app.command("policy")
def policy(
    folder: Folder = FOLDER,
    edit: Annotated[bool, typer.Option("--edit", help="Open party.toml in your editor, and check it.")] = False,
    check: Annotated[
        str | None, typer.Option("--check", metavar="STUDY", help="Tell whether this study is allowed.")
    ] = None,
) -> None:
    """Show what you allow; edit it; or check a study against it.

    Examples:

      tacit party policy

      tacit party policy --check heart
    """
    from tacit.daemon.party.owner_text import policy_lines, why_not
    from tacit.daemon.party.settings import FILE, PartyFile

    _, consents = _opened(folder)
    if edit:
        _edit(folder / FILE)
    rules = PartyFile.read(folder).policy
    if check is None:
        out.print("\n".join(policy_lines(rules)), markup=False)
        return
    offered = _found(check, consents)
    if reason := why_not(offered, rules):
        raise PolicyRefusal(f"{offered.read().name}: {reason}")
    out.print(f"{offered.read().name}: allowed", markup=False)


@app.callback()
def party() -> None:
    """Take part in a federation with your own data."""


def _opened(folder: Path) -> tuple[MemberFolder, Consents]:
    from tacit.daemon.party.consent import FILE as CONSENT_FILE
    from tacit.daemon.party.consent import Consents
    from tacit.federation.member.folder import MemberFolder

    return MemberFolder.load(folder, "party"), Consents(folder / CONSENT_FILE)


def _edit(path: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*shlex.split(editor), str(path)], check=False)
    except OSError as error:
        raise SettingError(f"the editor {editor!r} cannot be run ({error.strerror}); set EDITOR") from error
    if done.returncode:
        raise SettingError(f"the editor {editor!r} ended with status {done.returncode}; {path} may be unchanged")


def _found(study: str, consents: Consents) -> OfferedStudy:
    """A study by its name or digest, or the one in a file."""
    path = Path(study)
    if not (path.suffix == ".toml" or path.is_file()):
        return consents.named(study)
    from tacit.methods import METHODS
    from tacit.studies.study import Study

    read = Study.read(path, known_methods=METHODS)
    consents.keep(read)
    found = consents.find(read.digest())
    if found is None:
        raise SettingError(f"{study} could not be kept; is the folder writable?")
    return found
