"""Whether a party's log and its releases tell the same: each release has its line, and each such line its release."""

from __future__ import annotations

from tacit.errors import LogTampered
from tacit.federation.log import Log
from tacit.privacy.ledger import Ledger

_NAME_CHARACTERS = 12


def check_releases(ledger: Ledger, log: Log, party: str) -> int:
    """Compare the two, and return the number of releases.

    Raises:
        LogTampered: if the log tells of a release that is not in the ledger, or twice of one. Or if the ledger holds
            one of which the log does not tell.
    """
    with ledger.database.snapshot():  # else a party that answers meanwhile would look tampered with
        lines = log.lines()
        rows = ledger.database.execute("SELECT question FROM release WHERE party = ?", (party,)).fetchall()
    told: set[str] = set()
    for line in lines:
        decision = line.decision
        if decision["decision"] != "released":
            continue
        question = str(decision["question"])
        if question in told:
            raise LogTampered(f"line {line.number} tells a second time of the release to question {_name(question)}")
        told.add(question)
    kept = {str(question) for (question,) in rows}
    for question in sorted(told - kept):
        raise LogTampered(f"the log tells of a release to question {_name(question)}, which is not in the ledger")
    for question in sorted(kept - told):
        raise LogTampered(f"the ledger holds a release to question {_name(question)}, of which the log does not tell")
    return len(kept)


def _name(question: str) -> str:
    return question[:_NAME_CHARACTERS]
