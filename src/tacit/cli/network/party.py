"""`tacit party`: what a data owner runs, reads and decides."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import JsonOutput, err, number, out
from tacit.cli.inspected import show_inspected
from tacit.cli.network import party_ledger, party_serve
from tacit.cli.network.acceptance import accept_on_terminal, accept_parties, confirm_study
from tacit.cli.network.party_folder import FOLDER, Folder, opened
from tacit.errors import PolicyRefusal, SettingError

if TYPE_CHECKING:  # whatever knows the methods is imported by the commands that need it: joining does not
    from tacit.daemon.party.consent import Consents, OfferedStudy

app = typer.Typer(help="Take part in a federation with your own data.", no_args_is_help=True, rich_markup_mode=None)

Named = Annotated[str, typer.Argument(metavar="STUDY", help="A name from `tacit party studies`, or a study file.")]


@app.command("init")
def init(
    invite: Annotated[Path, typer.Option("--invite", metavar="FILE", help="The invitation from the coordinator.")],
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="Your records: CSV, TSV or Parquet.")] = None,
    query: Annotated[str | None, typer.Option(metavar="SQL", help="Or a query that gives them.")] = None,
    database: Annotated[
        str | None, typer.Option(help="The query's database: a DuckDB file, sqlite:PATH or postgres:DSN.")
    ] = None,
    password_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file with the database's password, mode 600.")
    ] = None,
    password_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Or the environment variable that has it.")
    ] = None,
    folder: Folder = FOLDER,
) -> None:
    """Join a federation: make this party's keys, which never leave this folder, and its party.toml.

    Examples:

      tacit party init --invite north.invite --data north.csv

      tacit party init --invite north.invite --query "SELECT * FROM visits" --database sqlite:clinic.db
    """
    from tacit.daemon.coordinator.joining import join
    from tacit.daemon.party.settings import FILE, DataSource, write_party_file
    from tacit.federation.member.folder import fingerprints
    from tacit.federation.member.invitation import Invitation

    source = DataSource(
        file=data, query=query, database=database, password_file=password_file, password_env=password_env
    )
    own = join(Invitation.read(invite), folder)
    write_party_file(folder, source)
    out.print(f"joined as {own.identity.name}; what you allow is in {folder / FILE}", markup=False)
    everybody = [own.member, own.pinned.coordinator, *own.pinned.center]
    out.print("compare these by telephone:\n" + "\n".join(fingerprints(everybody)), markup=False)
    err.print(f"next: tacit party serve --folder {folder}", markup=False)


app.command("serve")(party_serve.serve)
app.command("password")(party_serve.password)


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

    own, consents = opened(folder)
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


@app.command("show")
def show(study: Named, folder: Folder = FOLDER) -> None:
    """Tell all of one study: in plain words, then in the method's own terms, with its digest, which you consent to.

    Examples:

      tacit party show heart
    """
    from tacit.daemon.party.anchor import open_ledger
    from tacit.daemon.party.consent_form import consent_form
    from tacit.daemon.party.decision import candidates_of
    from tacit.daemon.party.owner_text import study_lines
    from tacit.daemon.party.settings import PartyFile
    from tacit.federation.member.folder import fingerprints
    from tacit.federation.member.known_members import KnownMembers

    own, consents = opened(folder)
    offered = _found(study, consents)
    policy, book = PartyFile.read(folder).policy, open_ledger(folder, own.identity.name)
    out.print("\n".join(consent_form(offered, own, policy, book).lines()), soft_wrap=True)
    book.close()
    out.print("\nThe same in the method's own terms:\n", soft_wrap=True)
    out.print("\n".join(study_lines(offered, own, policy)), soft_wrap=True)
    accepted = KnownMembers(folder).accepted() or {}
    for member in candidates_of(offered, own).values():
        state = "accepted" if accepted.get(member.name) == member.fingerprint else "not accepted yet"
        out.print(f"  {fingerprints([member])[0]}  {state}", soft_wrap=True)


@app.command("accept")
def accept(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME=FINGERPRINT...", help="Parties, with what they told you by telephone."),
    ],
    folder: Folder = FOLDER,
) -> None:
    """Accept parties: in studies that you opt into from now on you may be added up with them.

    On a terminal a name alone shows the fingerprint and asks.

    Examples:

      tacit party accept "south=1f0c 22d1 9a3b 0e5f 7c66 81b2 d4e0 5a97"

      tacit party accept south
    """
    from tacit.federation.member.folder import MemberFolder, fingerprints

    MemberFolder.load(folder, "party")
    out.print("accepted:\n" + "\n".join(fingerprints(accept_parties(folder, names))), soft_wrap=True)


@app.command("opt-in")
def opt_in(
    studies: Annotated[
        list[str], typer.Argument(metavar="STUDY...", help="Names or digests from `tacit party studies`, or files.")
    ],
    folder: Folder = FOLDER,
    runs: Annotated[
        int | None,
        typer.Option(help="How many runs you allow; one that loses a party starts again. Without it 2, if these fit."),
    ] = None,
    until: Annotated[
        str, typer.Option(metavar="YYYY-MM-DD", help="The last day, in universal time; without it there is none.")
    ] = "",
    digest: Annotated[
        list[str] | None,
        typer.Option(metavar="DIGEST", help="The digest as `tacit party show` told it; once for each study."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(parser=number, metavar="E", help="Offer less than the study asks; your records then count less."),
    ] = None,
) -> None:
    """Take part in studies, with the parties that you accepted. What you consent to is a study's digest.

    On a terminal the digest is shown and confirmed, and so is the fingerprint of each party that you have not accepted
    yet. Elsewhere give --digest, and accept the parties first.

    Examples:

      tacit party opt-in heart

      tacit party opt-in heart --epsilon 0.5

      tacit party opt-in study.toml --runs 1 --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    """
    from tacit.daemon.party import decision
    from tacit.daemon.party.anchor import open_ledger
    from tacit.daemon.party.owner_text import cost_line, runs_that_fit, why_not_so_many
    from tacit.daemon.party.settings import PartyFile

    own, consents = opened(folder)
    policy = PartyFile.read(folder).policy
    wanted = [_found(study, consents).offering(epsilon) for study in studies]
    allowed = [runs or runs_that_fit(offered, policy) for offered in wanted]
    extents = [decision.ConsentTerms(runs=many, until=decision.end_of_day(until)) for many in allowed]
    for offered, many in zip(wanted, allowed, strict=True):
        decision.check_open(offered, folder, many)
    book = open_ledger(folder, own.identity.name)
    account = book.sole_account(own.identity.name)
    for said, offered, extent in zip(studies, wanted, extents, strict=True):
        candidates = decision.candidates_of(offered, own)
        accept_on_terminal(folder, candidates)
        sum_group = decision.accepted_among(folder, candidates)
        known = [own.identity.name, *candidates]
        out.print("\n".join(decision.sum_group_lines(sum_group, offered.read(), known)), soft_wrap=True)
        words = f"{extent.runs} {'run' if extent.runs == 1 else 'runs'}"
        out.print(f"{words}, {cost_line(offered, extent.runs, policy.budget, book, account)}", soft_wrap=True)
        if more := why_not_so_many(offered, extent.runs + 1, policy) if runs is None else "":
            out.print(f"no more runs than that: {more}", soft_wrap=True)
        confirm_study(offered, said, digest or ())
        decision.opt_in(own, consents, offered, extent)
        out.print(f"in: {offered.read().name}, digest {offered.digest}", soft_wrap=True)


@app.command("opt-out")
def opt_out(study: Named, folder: Folder = FOLDER) -> None:
    """Leave a study, at any time: from the next round on nothing leaves; what was spent stays spent.

    Examples:

      tacit party opt-out heart
    """
    from tacit.daemon.party import decision

    _, consents = opened(folder)
    offered = _found(study, consents)
    decision.opt_out(consents, offered)
    out.print(f"out: {offered.read().name}, digest {offered.digest}", markup=False, soft_wrap=True)


app.command("ledger")(party_ledger.ledger)
app.command("log")(party_ledger.log)
app.command("abandon-ledger")(party_ledger.abandon_ledger)


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

    _, consents = opened(folder)
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


@app.command("check")
def check_data(study: Named, folder: Folder = FOLDER, json_output: JsonOutput = False) -> None:
    """Look through your own records for what does not fit a study, and say in which line; nobody else is told.

    Examples:

      tacit party check heart
    """
    from tacit.daemon.party.settings import PartyFile

    _, consents = opened(folder)
    asked = _found(study, consents).read()
    found = PartyFile.read(folder).data.inspect(asked.schema, person=asked.person)
    show_inspected([found], asked.name, json_output=json_output, as_list=False)


@app.command("members")
def members(folder: Folder = FOLDER, json_output: JsonOutput = False) -> None:
    """List whom this party knows, with their fingerprints, and who was revoked or has new keys.

    Examples:

      tacit party members
    """
    from tacit.cli.network.membership import show_standing, standing
    from tacit.federation.member.folder import MemberFolder, fingerprints
    from tacit.federation.member.known_members import KnownMembers

    own = MemberFolder.load(folder, "party")
    known = KnownMembers(folder)
    pinned = [own.pinned.coordinator, *(known.successor(node) for node in own.pinned.center)]
    everybody = [*pinned, *known.parties().values()]
    if json_output:
        print(json.dumps(standing(folder, everybody)))
        return
    out.print("\n".join(fingerprints(everybody)), markup=False, soft_wrap=True)
    show_standing(folder)


@app.command("accept-key")
def accept_key(
    name: Annotated[str, typer.Argument(help="A member whose keys `members` shows as not believed.")],
    fingerprint: Annotated[str, typer.Argument(help="Its fingerprint, as it told you by telephone, in quotes.")],
    folder: Folder = FOLDER,
) -> None:
    """Believe a member with keys that the coordinator tells of, and that its old keys did not sign.

    Examples:

      tacit party accept-key south "0f3a 91bc 77de 20aa 4c51 9e08 b6f2 d3c4"
    """
    from tacit.cli.network import membership

    membership.accept_key(folder, "party", name, fingerprint)


@app.command("rotate-key")
def rotate_key(folder: Folder = FOLDER) -> None:
    """Make new keys, signed with the old ones, so that the others follow; then start `serve` again.

    Examples:

      tacit party rotate-key
    """
    from tacit.cli.network import membership

    membership.rotate_key(folder, "party")


@app.callback()
def party() -> None:
    """Take part in a federation with your own data."""


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
