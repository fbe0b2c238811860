"""What a practice federation works with: real records of tumours in four parts, and a study that is ready to run."""

from __future__ import annotations

from pathlib import Path

from tacit.datasets import tumour
from tacit.federation.member.approval import Approval, ApproverKey
from tacit.storage import write_whole
from tacit.studies.study import FederationRequest, PrivacyRequest, Study

PARTIES = ("north", "south", "west")
LATER = "east"  # has data and an invitation, and joins when the learner wants it to
NODES = ("node-a", "node-b", "node-c")
STUDY_FILE = "study.toml"
AUTHOR, APPROVER = "ada", "ben"  # who wrote the study, and who signed it
APPROVER_FOLDER = "approver"

_SHARES = {"north": 0.33, "south": 0.27, "west": 0.2, LATER: 0.2}


def ready_study() -> Study:
    """The study that is offered from the start: few columns, a strong promise, and no party is indispensable."""
    return Study(
        name="tumours",
        purpose="Which measurements of a cell's nucleus tell a malignant tumour from a benign one?",
        schema=tumour.SCHEMA,
        method="private-newton",
        privacy=PrivacyRequest(epsilon=1.0),
        federation=FederationRequest(quorum=2),
    )


def ready_approval(folder: Path) -> Approval:
    """The approver's signature of the study, with the key that `write_material` made."""
    return ApproverKey.load(folder / APPROVER_FOLDER).approve(ready_study().digest(), author=AUTHOR)


def write_material(folder: Path) -> None:
    """Write each party's records, as NAME.csv, the study, and the key of somebody who approves studies."""
    ApproverKey.make(APPROVER, folder / APPROVER_FOLDER)
    for name, part in tumour.split(tumour.shuffled(), _SHARES).items():
        write_whole(folder / f"{name}.csv", part.to_csv(index=False))
    write_whole(folder / STUDY_FILE, ready_study().to_toml())
