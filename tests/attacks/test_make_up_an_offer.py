"""The coordinator wants a party's records to count for more than their owner offers: it tells of another offer.

What a party offers decides what its records weigh and cost. It is in the run's group, signed by the party itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tacit.studies.study import Study

from ..daemon.conftest import STUDY
from .office import Office, refusal

ASKED = Study.parse(STUDY.replace('"averaging"', '"functional-mechanism"'))
SIZES = {"north": 60, "south": 40}


def test_an_offer_that_nobody_signed_begins_no_run(tmp_path: Path) -> None:
    office = Office(tmp_path, SIZES)
    office.opt_in(ASKED, offers={"south": 0.25})
    group = office.group(ASKED)
    for offers in ({}, {"south": 0.9}, {"south": 0.25, "north": 0.5}):
        false = replace(group, offers=offers)
        told = {name: refusal(partial(office.send, name, "begin", ASKED, "r", false.encode())) for name in SIZES}
        assert all("is not the one that" in words for words in told.values()), told
    office.begin(ASKED, "r1", group)
    office.close()


def test_an_offer_of_a_party_whose_size_is_hidden_is_signed_too(tmp_path: Path) -> None:
    hidden = Study.parse(
        STUDY.replace('"averaging"', '"private-newton"').replace("epsilon = 1.0", 'epsilon = 1.0\nunit = "party"')
    )
    office = Office(tmp_path, {**SIZES, "west": 9})
    office.opt_in(hidden, offers={"south": 0.5})
    group = office.group(hidden)
    assert (group.sizes, dict(group.offers)) == ((), {"south": 0.5})
    false = replace(group, offers={"south": 0.6})
    assert "is not the one that 'south' announced" in refusal(
        lambda: office.send("north", "begin", hidden, "r", false.encode())
    )
    office.begin(hidden, "r1", group)
    office.close()
