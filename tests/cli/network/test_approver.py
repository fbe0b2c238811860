"""`tacit approver`: a key, a fingerprint and a signature."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.cli.main import main
from tacit.federation.member.approval import Approval
from tacit.studies.study import Study

from ...daemon.conftest import STUDY

DIGEST = Study.parse(STUDY).digest()


def says(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    with pytest.raises(SystemExit):
        main(["approver", *words])
    told = capsys.readouterr()
    return told.out, told.err


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "study.toml").write_text(STUDY)
    says(capsys, "init", "Grace Hopper", "--folder", str(tmp_path / "approver"))
    return tmp_path


def test_a_study_is_signed_by_whoever_has_the_key(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (folder / "approver" / "approver.key").stat().st_mode & 0o077 == 0
    shown, _ = says(capsys, "show", "--folder", str(folder / "approver"))
    words = ("sign", str(folder / "study.toml"), "--author", "Ada", "--folder", str(folder / "approver"))
    printed, told = says(capsys, *words, "--digest", DIGEST)
    approval = Approval.parse(printed)
    assert approval.fingerprint in shown
    assert (approval.study, approval.author, approval.approver) == (DIGEST, "Ada", "Grace Hopper")
    assert DIGEST in told
    out, _ = says(capsys, *words, "--digest", DIGEST, "--version", "2", "--replaces", "0" * 64, "-o", str(folder / "a"))
    assert "upload it on the study's page" in out
    assert Approval.parse((folder / "a").read_text()).version == 2


def test_nothing_is_signed_that_was_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("sign", str(folder / "study.toml"), "--folder", str(folder / "approver"))
    assert "nothing was signed; say --digest" in says(capsys, *words, "--author", "Ada")[1]
    assert "read it again before you sign" in says(capsys, *words, "--author", "Ada", "--digest", "0" * 64)[1]
    assert "another person must approve" in says(capsys, *words, "--author", "grace hopper", "--digest", DIGEST)[1]
    told = says(capsys, "init", "Eve", "--folder", str(folder / "approver"))[1]
    assert "is not written over" in told
    assert "run `tacit approver init NAME` first" in says(capsys, "show", "--folder", str(folder / "other"))[1]
