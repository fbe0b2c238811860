"""`tacit approver`: what somebody runs who approves studies, on a machine of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import JsonOutput, err, is_terminal, out
from tacit.errors import SettingError

app = typer.Typer(help="Approve studies: sign with a key of your own.", no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="The approver's folder.")]
FOLDER = Path("approver")


@app.command("init")
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Your name, as parties are to read it.")],
    folder: Folder = FOLDER,
) -> None:
    """Make a key to sign with. It never leaves this folder; its fingerprint is for the parties.

    Examples:

      tacit approver init "Grace Hopper"
    """
    from tacit.federation.member.approval import SECRET_FILE, ApproverKey

    made = ApproverKey.make(name, folder)
    out.print(f"made {folder}; the key is in {folder / SECRET_FILE}: keep it, and show it to nobody", markup=False)
    out.print(f"fingerprint  {made.fingerprint}", markup=False)
    err.print(
        'tell the fingerprint to each party by telephone; it goes into its party.toml: approvers = ["..."]',
        markup=False,
    )


@app.command("show")
def show(folder: Folder = FOLDER, json_output: JsonOutput = False) -> None:
    """Tell your name and your key's fingerprint, for parties to compare.

    Examples:

      tacit approver show
    """
    from tacit.federation.member.approval import ApproverKey

    key = ApproverKey.load(folder)
    if json_output:
        print(json.dumps({"name": key.name, "fingerprint": key.fingerprint}))
        return
    out.print(f"{key.name}\nfingerprint  {key.fingerprint}", markup=False)


@app.command("sign")
def sign(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study that you have read.")],
    author: Annotated[str, typer.Option(metavar="NAME", help="Who wrote it: somebody else than you.")],
    folder: Folder = FOLDER,
    version: Annotated[int, typer.Option(help="Which version of the study this is.")] = 1,
    replaces: Annotated[
        str, typer.Option(metavar="DIGEST", help="The digest of the version before, which begins no new run then.")
    ] = "",
    digest: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="The digest of what you read; on a terminal it is asked.")
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where the approval goes; else it is printed.")
    ] = None,
) -> None:
    """Sign a study that you have read. Parties that name you in their policy verify the signature themselves.

    Upload or paste what this prints on the study's page, or hand it to whoever announces the study.

    Examples:

      tacit approver sign study.toml --author "Ada Lovelace"

      tacit approver sign study.toml --author "Ada Lovelace" --version 2 --replaces 9f86d0818... -o heart.approval
    """
    from tacit.federation.member.approval import ApproverKey
    from tacit.methods import METHODS
    from tacit.storage import write_whole
    from tacit.studies.study import Study

    key = ApproverKey.load(folder)
    read = Study.read(study, known_methods=METHODS)
    found = read.digest()
    err.print(f"study    {read.name}\npurpose  {read.purpose}\nauthor   {author}\ndigest   {found}", soft_wrap=True)
    if digest is not None and digest != found:
        raise SettingError(f"{study} has the digest {found}, not {digest}; read it again before you sign")
    if digest is None and not (
        is_terminal() and typer.confirm(f"Have you read {study}, and do you approve it as {key.name}?", err=True)
    ):
        raise SettingError("nothing was signed; say --digest and the digest of the study that you read")
    approval = key.approve(found, author=author, version=version, replaces=replaces)
    if out_file is None:
        print(approval.text(), end="")
        return
    write_whole(out_file, approval.text())
    out.print(f"wrote {out_file}: upload it on the study's page", markup=False, soft_wrap=True)


@app.callback()
def approver() -> None:
    """Approve studies: sign with a key of your own."""
