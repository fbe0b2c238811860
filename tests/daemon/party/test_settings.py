"""`party.toml` can say everything that a policy can, and shows it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tacit.daemon.party.owner_text import policy_lines
from tacit.daemon.party.settings import FILE, DataSource, PartyFile, write_party_file
from tacit.errors import SettingError
from tacit.federation.policy import Policy
from tacit.privacy.ledger import Budget

# Each setting as the file says it, other than by default, and as the policy then has it.
SAID = {
    "methods": ('["averaging"]', ("averaging",)),
    "columns": ('["age"]', ("age",)),
    "min_records": ("31", 31),
    "min_records_exact": ("41", 41),
    "epsilon_per_study": ("0.75", 0.75),
    "epsilon_in_all": ("1.25", 1.25),
    "delta": ("1e-7", 1e-7),
    "relation": ('"add-remove"', "add-remove"),
    "not_private": ('["pooled"]', ("pooled",)),
    "approvers": (f'["{"1f0c " * 8}"]', ("1f0c " * 8,)),
}
SETTINGS = {field.name for field in (*fields(Policy), *fields(Budget))} - {"budget"}


def written(folder: Path) -> str:
    write_party_file(folder, DataSource(file=folder / "records.csv"))
    return (folder / FILE).read_text()


def policy(folder: Path, text: str) -> Policy:
    (folder / FILE).write_text(text)
    return PartyFile.read(folder).policy


def value(policy: Policy, name: str) -> object:
    return getattr(policy.budget if hasattr(policy.budget, name) else policy, name)


def test_the_file_that_is_written_names_every_setting(tmp_path: Path) -> None:
    named = set(re.findall(r"^(?:# )?(\w+) = ", written(tmp_path).split("[policy]")[1], re.MULTILINE))
    assert named == SETTINGS == set(SAID)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_setting_in_the_file_is_the_policys_and_is_shown(tmp_path: Path, name: str) -> None:
    text, wanted = SAID[name]
    plain = policy(tmp_path, written(tmp_path))
    line = re.compile(rf"^(# )?{name} = .*$", re.MULTILINE)
    changed = policy(tmp_path, line.sub(f"{name} = {text}", (tmp_path / FILE).read_text()))
    assert value(changed, name) == wanted != value(plain, name)
    others = SETTINGS - {name}
    assert {other: value(changed, other) for other in others} == {other: value(plain, other) for other in others}
    shown = [one for one in policy_lines(changed) if one.split()[0] == name]
    assert len(shown) == 1
    assert shown != [one for one in policy_lines(plain) if one.split()[0] == name]


def test_a_setting_that_no_policy_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"party\.toml.*min_record"):
        policy(tmp_path, written(tmp_path).replace("min_records =", "min_record ="))
    with pytest.raises(SettingError, match=r"relation.*add-remove"):
        policy(tmp_path, written(tmp_path).replace("min_record =", "min_records =").replace('"replace-one"', '"both"'))
