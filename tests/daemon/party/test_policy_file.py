"""A policy that is written from a form is the one that the daemon reads, and the owner's comments stay."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tacit.daemon.party.policy_file import policy_values, write_policy
from tacit.daemon.party.settings import DataSource, PartyFile, write_party_file
from tacit.federation.policy import Policy
from tacit.privacy.ledger import Budget

NEW = Policy(
    methods=["averaging", "private-newton"],
    columns=['odd "name"', "age"],
    min_records=3,
    min_records_exact=30,
    budget=Budget(epsilon_per_study=2.5, epsilon_in_all=math.inf, delta=1e-7, relation="add-remove"),
    not_private=["privlogit"],
    approvers=["1f0c 22d1 9a3b 0e5f 7c66 81b2 d4e0 5a97"],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("a\n1\n")
    write_party_file(tmp_path, DataSource(file=tmp_path / "t.csv"))
    return tmp_path


def test_what_was_written_is_read_and_comments_stay(folder: Path) -> None:
    file = folder / "party.toml"
    file.write_text("# mine\n" + file.read_text() + "# the end\n")
    data = PartyFile.read(folder).data
    write_policy(folder, NEW)
    assert policy_values(PartyFile.read(folder).policy) == policy_values(NEW)
    assert PartyFile.read(folder).data == data
    text = file.read_text()
    for comment in (
        "# mine",
        "# the end",
        "# the fewest records with which it answers at all",
        "# the methods it takes",
    ):
        assert comment in text
    assert file.stat().st_mode & 0o077 == 0


def test_back_and_forth_is_as_it_was(folder: Path) -> None:
    first = PartyFile.read(folder).policy
    write_policy(folder, NEW)
    write_policy(folder, first)
    assert policy_values(PartyFile.read(folder).policy) == policy_values(first)
    write_policy(folder, NEW)
    assert policy_values(PartyFile.read(folder).policy) == policy_values(NEW)


@pytest.mark.parametrize(
    "section",
    [
        "[policy]\nmethods = [\n  'averaging', # one\n  'ensemble',\n]\nmin_records = 5\n",
        "[policy]\nnot_private = ['pooled'] # with a # in it, and ' too\n",
        "",
        "[ policy ]\ndelta = 1e-8",
    ],
)
def test_a_file_that_its_owner_wrote_otherwise_is_written_too(folder: Path, section: str) -> None:
    file = folder / "party.toml"
    file.write_text(file.read_text().partition("[policy]")[0] + section)
    data = PartyFile.read(folder).data
    write_policy(folder, NEW)
    read = PartyFile.read(folder)
    assert policy_values(read.policy) == policy_values(NEW)
    assert read.data == data
