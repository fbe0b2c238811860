"""The reference of the study file names every key that the reader knows, and its example is a study."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tacit.studies import reading
from tacit.studies.content import FILE_SETTINGS
from tacit.studies.request import PRIVACY_KEYS
from tacit.studies.study import Study

PAGE = (Path(__file__).parents[1] / "docs" / "study-file.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    found = re.search(rf"^## .*\[{name}\].*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"the page has no section on [{name}]"
    return found.group()


@pytest.mark.parametrize("table", reading.TABLES)
def test_every_table_has_a_section(table) -> None:
    assert section(table)


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        ("feature", {"name", "kind", *(key for keys in reading._KEYS.values() for key in keys)}),
        ("privacy", set(PRIVACY_KEYS)),
        ("federation", {"quorum", "deadline_seconds", "colluders", "parties", "dropouts"}),
        ("study", {"name", "purpose", "norm_bound", "coding", "ignore"}),
        ("content", set(FILE_SETTINGS)),
    ],
)
def test_every_key_is_explained(table, keys) -> None:
    told = set(re.findall(r"`(\w+)`", section(table)))
    assert keys <= told, f"[{table}] lacks {sorted(keys - told)}"


def test_the_example_is_a_study() -> None:
    small, large = (Study.parse(example) for example in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
    assert small.name == "heart"
    assert large.schema.feature_names == ("lactate", "age", "arrival", "admitted", "antibiotics")
    assert large.person == "patient_id"
