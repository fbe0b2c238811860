"""The commands of a federation, from nothing to a finished study."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.main import main
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.known_members import KnownMembers
from tacit.privacy.ledger import Ledger
from tacit.studies.study import Study

from ...daemon.conftest import STUDY, Loopback, build, free_port, records, wait_for

DIGEST = Study.parse(STUDY).digest()


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Outcome]


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return Outcome(int(caught.value.code or 0), told.out, told.err)

    return call


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Loopback]:
    made = build(tmp_path, parties={"north": 120, "south": 80})
    (tmp_path / "study.toml").write_text(STUDY)
    yield made
    made.close()


def test_a_study_from_its_announcement_to_its_report(served: Loopback, tacit: Call) -> None:
    root, folder = served.root, served.coordinator
    study = root / "study.toml"
    assert tacit("coordinator", "announce", study, "--folder", folder).status == 0
    wait_for(
        lambda: "study-announced" in served.journal("north") and "study-announced" in served.journal("south"), "news"
    )

    told = tacit("party", "studies", "--folder", served.folder("north")).out
    for words in (
        "Who recovers?",
        "you have not decided",
        "age, treated",
        "averaging",
        "your policy allows it",
        "Is seen",
    ):
        assert words in told
    for name in ("north", "south"):
        other = "south" if name == "north" else "north"
        wait_for(lambda name=name, other=other: other in KnownMembers(served.folder(name)).parties(), "the news")  # type: ignore[misc]
        mark = MemberFolder.load(served.folder(other), "party").member.fingerprint
        assert tacit("party", "accept", f"{other}={mark}", "--folder", served.folder(name)).status == 0
        told = tacit("party", "show", "trial", "--folder", served.folder(name)).out
        assert re.search(rf"{other} +{mark}  accepted", told)
        digest = re.findall(r"Digest +(\w{64})", told)[0]
        done = tacit("party", "opt-in", "trial", "--digest", digest, "--folder", served.folder(name))
        assert (done.status, "at most epsilon 1.4" in done.out) == (0, True)  # two runs with Gaussian noise
        assert re.search(
            rf"you may be added up with some or all of these, and nobody else:\n.*{other} +{mark}", done.out
        )
    known = tacit("center", "members", "--folder", served.folder("node-a")).out
    assert re.search(r"party +north +(\w{4} ){7}", known)

    done = tacit("run", study, "--folder", folder, "--json", "--out", root / "results")
    assert done.status == 0, done.err
    assert [party["name"] for party in done.json["parties"]] == ["north", "south"]
    names = {"model.json", "report.html", "report.txt", "result.json", "log.jsonl"}
    assert {path.name for path in (root / "results").iterdir()} == names
    events = [json.loads(line)["event"] for line in (root / "results" / "log.jsonl").read_text().splitlines()]
    assert events[0] == "began"
    assert events[-1] == "ended"

    book = tacit("party", "ledger", "--folder", served.folder("north"), "--plot", root / "spent.svg")
    assert re.search(r"trial +1 +1 ", book.out)
    assert (root / "spent.svg").read_text().startswith("<svg")
    assert tacit("party", "ledger", "--folder", served.folder("north"), "--json").json["studies"] == {
        "trial": pytest.approx(1.0)
    }
    assert "2 lines, whole and in order" in tacit("party", "log", "--verify", "--folder", served.folder("north")).out
    assert '"decision": "released"' in tacit("party", "log", "--folder", served.folder("north")).out
    assert tacit("party", "opt-out", "trial", "--folder", served.folder("north")).status == 0
    wait_for(lambda: '"opted-out", "member": "north"' in served.journal("coordinator"), "the news of it")


def test_doctor_finds_all_well_and_says_what_is_not(served: Loopback, tacit: Call) -> None:
    for name in ("north", "node-a", "coordinator"):
        done = tacit("doctor", "--folder", served.folder(name))
        assert (done.status, "FAIL" in done.out) == (0, False), done.out
    assert "s from the coordinator's" in tacit("doctor", "--folder", served.folder("north")).out
    (served.folder("north") / "identity.key").chmod(0o644)
    done = tacit("doctor", "--folder", served.folder("north"))
    assert (done.status, "not well: keys" in done.err) == (1, True)
    served.stop("coordinator")
    done = tacit("doctor", "--folder", served.folder("south"))
    assert done.status == 1
    assert "is `tacit coordinator serve` running" in done.out


def test_doctor_reads_the_table_of_a_study_that_was_opted_into(served: Loopback, tacit: Call) -> None:
    north = served.folder("north")
    assert tacit("party", "opt-in", served.root / "study.toml", "--digest", DIGEST, "--folder", north).status == 0
    assert "the table fits 'trial'" in tacit("doctor", "--folder", north).out
    records(20, 0).drop(columns="age").to_csv(served.root / "north.csv", index=False)
    done = tacit("doctor", "--folder", north)
    assert done.status == 1
    assert re.search(r"FAIL +data .*'age'", done.out)


def test_doctor_misses_a_file_that_is_not_there(served: Loopback, tacit: Call) -> None:
    north = served.folder("north")
    (served.root / "north.csv").rename(served.root / "gone.csv")
    done = tacit("doctor", "--folder", north)
    assert done.status == 1
    assert re.search(r"FAIL +data .*north\.csv is not there", done.out.replace("\n", " "))
    done = tacit("party", "opt-in", served.root / "study.toml", "--digest", DIGEST, "--folder", north)
    assert (done.status, "north.csv is not there, and party.toml says" in done.err) == (2, True), done.err


def test_policy_is_shown_and_checked(served: Loopback, tacit: Call) -> None:
    north = served.folder("north")
    assert "min_records        1\n" in tacit("party", "policy", "--folder", north).out
    path = north / "party.toml"
    good = path.read_text()
    assert tacit("party", "policy", "--check", served.root / "study.toml", "--folder", north).status == 0
    for old, new, words in [
        ("epsilon_per_study = 10.0", "epsilon_per_study = 0.5", "one run costs epsilon 1, over"),
        ("min_records = 1 ", 'min_records = 1\ncolumns = ["age"]', "column 'treated' is not among"),
        ("min_records = 1 ", 'min_records = 1\nmethods = ["pooled"]', "method 'averaging' is not among"),
    ]:
        path.write_text(good.replace(old, new))
        done = tacit("party", "policy", "--check", served.root / "study.toml", "--folder", north)
        assert (done.status, words in done.err) == (2, True), done.err
        assert "your own policy forbids" in tacit("party", "opt-in", served.root / "study.toml", "--folder", north).err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("min_records", "min_record"), "policy.min_record is an unknown key; did you mean policy.min_records"),
        (("min_records = 1 ", "min_records = 0 "), "policy.min_records is 0"),
        (("epsilon_in_all = 3.0", 'epsilon_in_all = "much"'), "policy.epsilon_in_all must be a number"),
        (("epsilon_in_all = 3.0", "epsilon_in_all = -1"), "epsilon_in_all = -1"),
        (("not_private = []", "not_private = [1]"), "policy.not_private must be a list of texts"),
        (("[data]\nfile", "[data]\nfil"), "data.fil is an unknown key"),
        (("[policy]", "[policy"), "is not TOML"),
    ],
)
def test_a_wrong_party_file_is_one_line(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    from tacit.daemon.party.settings import DataSource, PartyFile, write_party_file
    from tacit.errors import SettingError

    write_party_file(tmp_path, DataSource(file=Path("north.csv")))
    assert PartyFile.read(tmp_path).policy.min_records == 1
    path = tmp_path / "party.toml"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    with pytest.raises(SettingError, match=re.escape(words)) as caught:
        PartyFile.read(tmp_path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["party", "init", "--invite", "nowhere.invite", "--data", "x.csv"], "nowhere.invite cannot be read"),
        (["party", "init", "--invite", "nowhere.invite"], "[data] needs either file"),
        (["party", "studies"], "is not the folder of a party"),
        (["center", "serve"], "is not the folder of a center"),
        (["coordinator", "serve"], "is not the folder of a coordinator"),
        (["coordinator", "init", "--url", "nats://x:1"], "must start with tls://"),
        (["coordinator", "init", "--port", "0"], "port 0 must lie between"),
        (["doctor"], "no member's folder was found here"),
    ],
)
def test_bad_input_is_one_line(
    tacit: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tacit(*command)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.slow
def test_a_run_without_a_server_says_so(tacit: Call, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    folder = tmp_path / "coordinator"
    assert tacit("coordinator", "init", "--folder", folder, "--port", free_port()).status == 0
    done = tacit("run", tmp_path / "study.toml", "--folder", folder)
    assert done.status == 1
    assert "is `tacit coordinator serve` running" in done.err


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["doctor"],
        *(["coordinator", word] for word in ("init", "serve", "invite", "revoke", "members", "announce", "renew")),
        *(
            ["party", w]
            for w in ("init", "serve", "studies", "show", "accept", "opt-in", "opt-out", "ledger", "log", "policy")
        ),
        ["center", "init"],
        ["center", "serve"],
        ["center", "members"],
        ["center", "accept"],
    ],
    ids=" ".join,
)
def test_help_has_examples(tacit: Call, command: list[str]) -> None:
    done = tacit(*command, "--help")
    assert done.status == 0
    assert f"tacit {' '.join(command)}" in done.out.partition("Examples")[2]


@pytest.mark.slow
def test_the_daemons_are_programs(tmp_path: Path) -> None:
    """The commands themselves, as processes that are stopped by a signal."""
    command = [sys.executable, "-m", "tacit.cli.main"]

    def call(*arguments: object) -> None:
        subprocess.run([*command, *map(str, arguments)], cwd=tmp_path, check=True, capture_output=True)

    call("coordinator", "init", "--port", free_port())
    with (tmp_path / "log").open("w") as log:
        daemon = subprocess.Popen([*command, "coordinator", "serve"], cwd=tmp_path, stdout=log, stderr=log)
        try:
            wait_for(lambda: '"serving"' in (tmp_path / "log").read_text(), "serving")
            call("coordinator", "invite", "north", "--without-center")
            records(30, 0).to_csv(tmp_path / "north.csv", index=False)
            call("party", "init", "--invite", "north.invite", "--data", "north.csv")
        finally:
            daemon.terminate()
            assert daemon.wait(300) == 0
    assert Ledger(tmp_path / "party" / "ledger.db").n_releases("north") == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
