"""What a practice federation works with: made-up patients of four hospitals, and a study that is ready to run.

No patient is real, and the truth is known: `tacit data get readmission` writes the same patients.
"""

from __future__ import annotations

from pathlib import Path

from tacit.datasets.made_up import SCHEMA, hospitals
from tacit.federation.member.approval import Approval, ApproverKey
from tacit.storage import write_whole
from tacit.studies.study import FederationRequest, PrivacyRequest, Study

PARTIES = ("north", "south", "west")
LATER = "east"  # has data and an invitation, and joins when the learner wants it to
NODES = ("node-a", "node-b", "node-c")
STUDY_FILE = "study.toml"
AUTHOR, APPROVER = "ada", "ben"  # who wrote the study, and who signed it
APPROVER_FOLDER = "approver"


def ready_study() -> Study:
    """The study that is offered from the start: few columns, a strong promise, and no party is indispensable."""
    return Study(
        name="readmission",
        purpose="Which patients come back within a month of going home?",
        schema=SCHEMA,
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
    for name, frame in hospitals().items():
        write_whole(folder / f"{name}.csv", frame.to_csv(index=False))
    write_whole(folder / STUDY_FILE, ready_study().to_toml())
