"""The docs say what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tacit

ROOT = Path(__file__).parent.parent


def test_generated_pages_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "build.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_dependency_has_a_reason_and_a_pin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [line for extra in project["optional-dependencies"].values() for line in extra]
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    for line in wanted:
        if line.startswith("tacit["):
            continue
        name = re.split(r"[<>=\[ ]", line)[0]
        assert name in reasons, f"{name} has no reason in docs/dependencies.md"
        assert name.lower() in pinned, f"{name} is not pinned in constraints.txt"


def test_python_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where it saves its report
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_changelog_starts_with_privacy_and_the_versions_agree() -> None:
    headings = re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert headings[0] == "Privacy"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == tacit.__version__


def test_the_interface_page_lists_every_public_name_once() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    table = page.partition("| name | what it is |")[2].partition("\n\n")[0]
    named = [
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.partition("|")[2].partition("|")[0])
    ]
    assert sorted(named) == sorted(tacit.__all__)
