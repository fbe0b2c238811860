"""What an owner reads when opting in: whom the consent lets in, and who is missing."""

from __future__ import annotations

from tacit.daemon.party.decision import sum_group_lines
from tacit.federation.member.identity import Identity
from tacit.studies.study import Study

from ..conftest import STUDY


def test_the_owner_is_neither_unknown_to_itself_nor_to_be_accepted() -> None:
    study = Study.parse(STUDY.replace("quorum = 2", 'parties = ["north", "south", "west", "east"]'))
    south = Identity("south", "party", b"s" * 32).member
    lines = sum_group_lines({"south": south}, study, ["north", "south", "west"])
    told = "\n".join(lines)
    assert "north" not in told
    assert "not accepted: west;" in told
    assert "not known here yet: east;" in told
