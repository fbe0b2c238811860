"""The folder of a party, as its commands name and open it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # whatever knows the methods is imported by the commands that need it
    from tacit.daemon.party.consent import Consents
    from tacit.federation.member.folder import MemberFolder

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="The party's folder.")]
FOLDER = Path("party")


def opened(folder: Path) -> tuple[MemberFolder, Consents]:
    """Who the party is, and what it was asked and said."""
    from tacit.daemon.party.consent import FILE as CONSENT_FILE
    from tacit.daemon.party.consent import Consents
    from tacit.federation.member.folder import MemberFolder

    return MemberFolder.load(folder, "party"), Consents(folder / CONSENT_FILE)
