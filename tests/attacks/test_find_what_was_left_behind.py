"""An attacker that gets hold of a machine after the fact: its memory, its disk, its list of processes."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tacit.daemon.party.anchor import make_ledger
from tacit.daemon.party.handler import PartyHandler
from tacit.daemon.party.settings import DataSource, PartyFile, write_party_file
from tacit.data import source as data_source
from tacit.data.source import connect
from tacit.errors import DataError, SettingError
from tacit.federation.federation import Federation
from tacit.federation.member.address import Address
from tacit.federation.member.folder import MemberFolder, Pinned
from tacit.federation.member.identity import Identity
from tacit.federation.nats.journal import Journal
from tacit.privacy.ledger import Ledger
from tacit.privacy.noise.discrete import discrete_laplace
from tacit.rand import Rng
from tacit.storage import make_private_folder
from tacit.studies.study import Study

from ..daemon.conftest import STUDY
from ..federation.conftest import agreement, count, group_of, make_parties, question

__all__ = ["make_parties"]  # a fixture


def restored(rng: Rng) -> Rng:
    """The generator as a snapshot of the machine's memory has it: every field, bit by bit."""
    twin = object.__new__(Rng)
    vars(twin).update(vars(rng))
    return twin


def test_a_snapshot_of_the_machine_does_not_foretell_the_next_release(
    make_parties: Callable[..., Federation],
) -> None:
    guard, agreed = make_parties().guard("north"), agreement(count)
    guard.rng = Rng.system()
    guard.begin("r", agreed, group_of(guard))
    guard.answer(question(guard, agreed, count), agreed, ())
    twin = restored(guard.rng)
    theirs, ours = (discrete_laplace(1e9, 16, rng=rng) for rng in (twin, guard.rng))
    assert not np.array_equal(theirs, ours)


# --- records on the disk ---------------------------------------------------------------------------------------------

RECORDS = (
    "SELECT 20 + i % 7000 / 100 AS age, i % 2 AS treated, CASE WHEN i % 3 = 0 THEN 'yes' ELSE 'no' END AS recovered"
)
READ = """
import sys, time
from pathlib import Path
from tacit.daemon.party.settings import PartyFile
from tacit.data import source
from tacit.studies.study import Study
source.MEMORY_LIMIT = "24MB"
table = PartyFile.read(Path(sys.argv[1])).data.open(Study.parse(sys.argv[2]).schema)
print(table.n_records, flush=True)
time.sleep(600)
"""


def found(*folders: Path) -> list[Path]:
    """The files in which records could be."""
    return [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 2**16]


def party(folder: Path, **data: object) -> MemberFolder:
    """A party's folder, as joining writes it."""
    identity = Identity.make("north", "party", make_private_folder(folder))
    pinned = Pinned(address=Address(url="tls://x:1", authority=""), coordinator=identity.member, center=())
    MemberFolder.write(folder, identity.member, pinned, None)
    write_party_file(folder, DataSource(**data))  # type: ignore[arg-type]
    make_ledger(folder, "north")
    return MemberFolder.load(folder, "party")


def test_records_stay_in_temporary_folders_after_a_kill(tmp_path: Path) -> None:
    temporary, folder = tmp_path / "tmp", tmp_path / "north"
    temporary.mkdir()
    own = party(folder, query=f"{RECORDS} FROM range(2000000) s(i)")
    reader = subprocess.Popen(
        [sys.executable, "-c", READ, str(folder), STUDY],
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert reader.stdout is not None
    try:
        assert reader.stdout.readline() == b"2000000\n"
    finally:
        reader.send_signal(signal.SIGKILL)
        reader.wait()
        reader.stdout.close()
    spilled = found(folder, temporary)
    assert spilled, "nothing was spilled, so this shows nothing"
    assert not found(temporary)
    for path in (folder, *(folder / "spill").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    PartyHandler(own, Journal("north")).close()
    assert not found(folder)


def test_a_folder_in_use_is_not_swept_and_one_whose_process_ended_is(tmp_path: Path) -> None:
    connection = connect(tmp_path)
    (kept,) = tmp_path.iterdir()
    other = connect(tmp_path)
    assert kept.is_dir()
    del other
    code = "import os, pathlib, sys; from tacit.data.source import connect; c = connect(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", f"{code}; os._exit(0)", str(tmp_path)], check=True)
    assert len(list(tmp_path.iterdir())) == 2
    del connection
    connect(tmp_path)
    assert not list(tmp_path.iterdir())


# --- what others on the machine may read -----------------------------------------------------------------------------


def test_others_read_the_folder_that_was_there_before(tmp_path: Path) -> None:
    folder = tmp_path / "north"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    old = os.umask(0o022)
    try:
        own = party(folder, query="SELECT 1")
        for name in ("ledger.db", "studies.db"):  # as an older release, or a restored backup, may leave them
            (folder / name).touch(mode=0o644)
        PartyHandler(own, Journal("north")).close()
        Ledger(tmp_path / "other.db").close()
    finally:
        os.umask(old)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes.pop("north") == 0o700
    assert {name for name, mode in modes.items() if mode & 0o077} == set()
    assert {"party.toml", "federation.json", "ledger.db", "studies.db", "identity.key"} <= set(modes)
    ledger = tmp_path / "restored.db"
    ledger.touch(mode=0o644)
    ledger.chmod(0o644)
    Ledger(ledger).close()
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600


# --- passwords -------------------------------------------------------------------------------------------------------

SECRET = "hunter2 'x\\\\"


@pytest.mark.parametrize(
    "address",
    [
        "postgres:host=db user=tacit password=hunter2",
        "postgres:host=db PASSWORD = 'hunter2'",
        "postgres:postgresql://tacit:hunter2@db/clinic",
        "postgres:postgresql://tacit@db/clinic?password=hunter2",
    ],
)
def test_a_password_is_in_the_list_of_processes_and_in_a_file(address: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"has a password in it.*name password_file or password_env") as caught:
        DataSource(query="SELECT 1", database=address)
    assert "hunter2" not in str(caught.value)
    write_party_file(tmp_path, DataSource(query="SELECT 1", database="postgres:host=db"))
    toml = tmp_path / "party.toml"
    toml.write_text(toml.read_text().replace("postgres:host=db", address))
    with pytest.raises(SettingError, match=r"party\.toml: the database's address has a password") as caught:
        PartyFile.read(tmp_path)
    assert "hunter2" not in str(caught.value)


class Statements:
    """A connection that notes what it is told, and fails as DuckDB does."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def execute(self, statement: str) -> None:
        self.told.append(statement)
        if statement.startswith("ATTACH"):
            raise duckdb.IOException(f"cannot connect: {statement}")


@pytest.mark.parametrize("address", ["host=db user=tacit", "postgresql://tacit@db/clinic"])
@pytest.mark.parametrize("place", ["file", "env"])
def test_an_error_tells_the_password(address: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Statements()
    monkeypatch.setattr("tacit.data.table.connect", lambda _: told)
    monkeypatch.setenv("CLINIC", SECRET)
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "secret").chmod(0o600)
    where = {"password_file": tmp_path / "secret"} if place == "file" else {"password_env": "CLINIC"}
    write_party_file(tmp_path, DataSource(query="SELECT 1", database=f"postgres:{address}", **where))  # type: ignore[arg-type]
    file = PartyFile.read(tmp_path)
    assert "hunter2" not in (tmp_path / "party.toml").read_text() + repr(file)
    with pytest.raises(DataError, match="the PostgreSQL database cannot be opened") as caught:
        file.data.open(Study.parse(STUDY).schema)
    assert "hunter2" in told.told[-1]
    assert caught.value.__suppress_context__
    assert "hunter2" not in str(caught.value)
    assert not data_source.holds_password(file.data.database or "")


def test_a_password_file_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "secret").chmod(0o640)
    source = DataSource(query="SELECT 1", database="postgres:host=db", password_file=tmp_path / "secret")
    with pytest.raises(SettingError, match=re.escape("secret, which holds a password: chmod 600 it")):
        source.open(Study.parse(STUDY).schema)
    with pytest.raises(SettingError, match="the environment has no NOWHERE"):
        DataSource(query="SELECT 1", database="postgres:host=db", password_env="NOWHERE").open(
            Study.parse(STUDY).schema
        )
    with pytest.raises(SettingError, match=r"not both, and with database = 'postgres:DSN' only"):
        DataSource(query="SELECT 1", password_env="NOWHERE")
