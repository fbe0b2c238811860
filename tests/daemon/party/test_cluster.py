"""A party whose records lie on its Dask cluster: `party.toml` says where, and a cluster that is gone costs nothing."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tacit.daemon.party.settings import FILE, DataSource, PartyFile, write_party_file
from tacit.data.scheduler import Scheduler
from tacit.errors import SettingError
from tacit.methods.averaging.statistic import local_model
from tacit.studies.study import Study

from ...attacks.office import Office, refusal
from ..conftest import STUDY, records

TRIAL = Study.parse(STUDY)
TLS = Scheduler(address="tls://dask.clinic.example:8786", ca="/k/ca.pem", cert="/k/cert.pem", key="/k/key.pem")


def test_party_toml_says_where_the_cluster_is(tmp_path: Path) -> None:
    write_party_file(tmp_path, DataSource(file=Path("/records/*.parquet"), cluster=TLS))
    read = PartyFile.read(tmp_path).data
    assert (str(read.file), read.cluster) == ("/records/*.parquet", TLS)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ('file = "records.parquet"\ncluster = "tcp://127.0.0.1:8786"', "from the root on, as the workers see it"),
        ('query = "SELECT 1"\ncluster = "tcp://127.0.0.1:8786"', "from the root on"),
        ('file = "/r.parquet"\ncluster = "tcp://10.0.0.9:8786"', "not encrypted"),
        ('file = "/r.parquet"\ncluster = "tls://dask:8786"', "ca, cert and key, all three"),
        ('file = "/r.parquet"\ncluster_ca = "ca.pem"', "cluster_ca is for a cluster"),
    ],
)
def test_a_file_that_cannot_be_meant_is_one_line(tmp_path: Path, data: str, why: str) -> None:
    (tmp_path / FILE).write_text(f"[data]\n{data}\n[policy]\n")
    with pytest.raises(SettingError, match=rf"party\.toml: .*{why}"):
        PartyFile.read(tmp_path)


def test_persons_cannot_be_weighed_there(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot weigh persons"):
        DataSource(file=Path("/r.parquet"), cluster=TLS).open(TRIAL.schema, person="patient")


def on_cluster(office: Office, name: str, address: str) -> None:
    """Put a party's records where a cluster reads them."""
    path = office.root / f"{name}.parquet"
    frame = records(60, 0)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM frame) TO '{path}' (FORMAT parquet)")
    assert len(frame) == 60
    folder = office.folders[name].path
    (folder / FILE).unlink()
    write_party_file(folder, DataSource(file=path, cluster=Scheduler(address=address)))


@pytest.mark.slow
def test_a_party_answers_from_its_cluster_and_a_cluster_that_is_gone_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("tacit.data.cluster.ANSWER_SECONDS", 5.0)
    office = Office(tmp_path, {"north": 60, "south": 40})
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        on_cluster(office, "north", cluster.scheduler_address)
        office.opt_in(TRIAL)
        group = office.group(TRIAL)
        assert group.sizes == (60, 40)
        office.begin(TRIAL, "r1", group)
        office.ask("north", TRIAL, "r1", office.question(TRIAL, "r1", group, local_model))
        assert office.n_releases("north") == 1
    told = refusal(lambda: office.send("north", "hello", TRIAL))
    assert "cannot be read" in told
    assert refusal(lambda: office.begin(TRIAL, "r2", group))
    assert office.n_releases("north") == 1
    log = (tmp_path / "north.log").read_text()
    assert "the Dask cluster at" in log or "no Dask scheduler answers" in log
    office.close()
