from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tacit.errors import SettingError
from tacit.privacy.guarantee import Guarantee
from tacit.report import RunFacts


def test_a_sound_run_with_an_epsilon_is_private(private_facts: RunFacts) -> None:
    assert private_facts.is_private
    assert private_facts.why_not_private == ()
    assert private_facts.promise == Guarantee(epsilon=1.0, delta=1e-6).plain_words()


def test_every_reason_takes_the_promise_away(private_facts: RunFacts) -> None:
    open_handed = replace(private_facts.parties[0], epsilon=math.inf)
    cases = {
        "no epsilon bounds what the result tells": replace(private_facts, guarantee=None),
        "no epsilon bounds what the result": replace(private_facts, guarantee=Guarantee(epsilon=math.inf)),
        "as the paper prints it": replace(private_facts, calibration="paper"),
        "whoever knows the seed can subtract it": replace(private_facts, seeded=True),
        "given by cleveland": replace(private_facts, parties=(open_handed, private_facts.parties[1])),
    }
    for reason, facts in cases.items():
        assert not facts.is_private
        assert len(facts.why_not_private) == 1
        assert reason in facts.why_not_private[0]
        assert facts.promise == "Nothing is promised about any single record."


def test_the_records_are_told_only_if_all_parties_tell(private_facts: RunFacts) -> None:
    assert private_facts.n_records == 597
    silent = replace(
        private_facts, parties=(replace(private_facts.parties[0], n_records=None), *private_facts.parties[1:])
    )
    assert silent.n_records is None


def test_unknown_names_are_refused(private_facts: RunFacts) -> None:
    with pytest.raises(SettingError, match="calibration = 'loose' is unknown; choose one of sound, paper"):
        replace(private_facts, calibration="loose")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="headings has 'Privcy'; the eight are Parties, Trust"):
        replace(private_facts, headings={"Privcy": "none"})
