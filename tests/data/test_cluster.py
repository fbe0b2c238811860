"""A table on a Dask cluster: the same sums to the last digit as in one process, whoever dies on the way."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.data.block import BLOCK_ROWS
from tacit.data.cluster import Cluster, cut
from tacit.data.parquet import ParquetFile, Reading, own_versions, see_file, span_blocks
from tacit.data.scheduler import Scheduler
from tacit.data.schema import Binary, Categorical, Numeric, Schema, Target
from tacit.data.stream import PART_ROWS
from tacit.data.table import Table
from tacit.errors import DataError, SettingError
from tacit.federation.policy import Policy
from tacit.models.loss import Loss
from tacit.rand import Rng

distributed = pytest.importorskip("distributed")

SCHEMA = Schema(
    (Numeric("age", 20, 90, missing="drop"), Categorical("pain", ("a", "b", "c")), Binary("sex", ("f", "m"))),
    Target("ill", ("no", "yes")),
    norm_bound=1.0,
)
OTHERS = (("tacit", "99"), *own_versions()[1:])
N = 2 * PART_ROWS + 20_011  # three parts, the last one short


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file with all records, and the same records in three files of odd sizes."""
    import duckdb

    folder = tmp_path_factory.mktemp("records")
    rng = np.random.default_rng(5)
    age = rng.uniform(10, 100, N)
    age[rng.random(N) < 0.01] = np.nan
    frame = pd.DataFrame(
        {
            "age": age,
            "pain": rng.choice(["a", "b", "c"], N),
            "sex": rng.choice(["f", "m"], N),
            "ill": np.where(rng.random(N) < 1 / (1 + np.exp(-(np.nan_to_num(age, nan=50) - 55) / 20)), "yes", "no"),
        }
    )
    ends = [0, 7, 150_001, N]
    pieces = {"all": (0, N)} | {f"piece-{i}": (ends[i], ends[i + 1]) for i in range(3)}
    for name, (start, end) in pieces.items():
        piece = frame.iloc[start:end]
        with duckdb.connect() as connection:
            connection.execute("COPY (SELECT * FROM piece) TO '%s' (FORMAT parquet)" % (folder / f"{name}.parquet"))
        assert len(piece) == end - start
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, memory_limit="4GiB", dashboard_address=":0"
    ) as started:
        yield started


def totals(table: Table) -> tuple[object, ...]:
    loss = Loss(n_features=table.n_columns)
    theta = np.linspace(-1, 1, loss.width)
    sums = loss.sums(table.stream("record"), theta)
    fine = loss.fine_gradient(table.stream(), theta)
    return sums.loss, sums.gradient, sums.curvature, sums.n_records, sums.n_chunks, fine


def assert_same(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_sums_are_the_same_to_the_last_digit_in_one_process_and_at_two_workers(records, cluster) -> None:
    whole = Table.from_file(records / "all.parquet", SCHEMA)
    spread = Table.from_dask(str(records / "piece-*.parquet"), SCHEMA, cluster.scheduler_address)
    assert (spread.n_records, spread.n_complete, spread.counts) == (N, whole.n_complete, whole.counts)
    np.testing.assert_array_equal(spread.class_counts, whole.class_counts)
    assert whole.n_complete < N  # some records are dropped: parts are cut where records were read, not where they count
    assert_same(totals(spread), totals(whole))
    for one, other in zip(spread.blocks(), whole.blocks(), strict=True):
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.y, other.y)


METHODS = {
    "private-newton": lambda: tacit.PrivateNewton(epsilon=1.0),
    "privlogit": lambda: tacit.PrivLogit(l2=1.0, standard_errors=False, secure="sums"),
    "functional-mechanism": lambda: tacit.FunctionalMechanism(epsilon=1.0, delta=1e-6),
    "averaging": lambda: tacit.Averaging(epsilon=1.0),
    "noisy-descent": lambda: tacit.NoisyDescent(epsilon=1.0, rounds=3),
}


def learned(table: Table, beside: Table, method: str) -> tuple[object, ...]:
    """A model, with noise that can be drawn again."""
    parties = tacit.Federation.from_tables(
        {"large": table, "small": beside}, policy=Policy(not_private=(method,)), rng=Rng.seeded(1)
    )
    model = METHODS[method]().fit(parties)
    return model.coef_, model.intercept_


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_model_is_the_same_to_the_last_digit_with_a_worker_killed_on_the_way(
    records, cluster, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Table.from_file(records / "all.parquet", SCHEMA)
    beside = Table.from_file(records / "piece-1.parquet", SCHEMA)
    table = Table.from_dask(str(records / "piece-*.parquet"), SCHEMA, cluster.scheduler_address)
    killed: list[int] = []
    in_order = Cluster.in_order

    def kill_after_the_first(self, function, items):
        for value in in_order(self, function, items):
            yield value
            if not killed:
                killed.append(next(iter(cluster.workers.values())).process.pid)
                os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(Cluster, "in_order", kill_after_the_first)
    found = learned(table, beside, method)
    assert killed
    assert_same(found, learned(whole, beside, method))


def test_parts_are_cut_by_record_numbers_whatever_the_files() -> None:
    files = [ParquetFile(name, 1, "", n) for name, n in [("a", 10), ("b", 0), ("c", 25)]]
    spans = [[(file.path, span) for file, span in part] for part in cut(files, 8)]
    assert spans == [
        [("a", (0, 8))],
        [("a", (8, 10)), ("c", (0, 6))],
        [("c", (6, 14))],
        [("c", (14, 22))],
        [("c", (22, 25))],
    ]
    assert list(cut(files, 35)) == [((files[0], (0, 10)), (files[2], (0, 25)))]


@pytest.mark.parametrize("m", [2048, BLOCK_ROWS])
def test_parts_make_no_chain_of_additions_longer(m: int) -> None:
    for n in [1, m, m + 1, PART_ROWS, PART_ROWS + 1, 2 * PART_ROWS, 3 * PART_ROWS + 1, 20_000_000]:
        sizes = [end - start for ((_, (start, end)),) in cut([ParquetFile("a", 1, "", n)], PART_ROWS)]
        longest = max(-(-size // m) for size in sizes) + len(sizes) - 1
        assert longest <= -(-n // m)


@pytest.mark.parametrize(
    ("address", "given", "why"),
    [
        ("tcp://10.1.2.3:8786", {}, "not encrypted"),
        ("tcp://dask.example:8786", {}, "not encrypted"),
        ("http://127.0.0.1:8786", {}, "no address of a scheduler"),
        ("10.1.2.3:8786", {}, "no address of a scheduler"),
        ("tls://dask.example:8786", {"ca": "ca.pem"}, "ca, cert and key, all three"),
        ("tcp://127.0.0.1:8786", {"ca": "ca.pem"}, "write tls://"),
    ],
)
def test_an_address_that_would_show_records_is_refused(address: str, given: dict, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        Scheduler(address=address, **given)


def test_a_cluster_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.data.cluster.ANSWER_SECONDS", 1.0)
    with pytest.raises(DataError, match=r"^no Dask scheduler answers at tcp://127.0.0.1:9 .*start it") as told:
        Table.from_dask("x.parquet", SCHEMA, "tcp://127.0.0.1:9")
    assert "\n" not in str(told.value)


@pytest.mark.slow
def test_what_workers_cannot_see_is_one_line(records, cluster, tmp_path) -> None:
    address = cluster.scheduler_address
    with pytest.raises(DataError, match=r"^worker tcp://.*gone.parquet cannot be read \(No such file"):
        Table.from_dask(str(tmp_path / "gone.parquet"), SCHEMA, address)
    with pytest.raises(DataError, match=r"^worker tcp://.*names no file"):
        Table.from_dask(str(tmp_path / "gone-*.parquet"), SCHEMA, address)
    (tmp_path / "text.parquet").write_text("age,pain\n")
    with pytest.raises(DataError, match="no Parquet file"):
        Table.from_dask(str(tmp_path / "text.parquet"), SCHEMA, address)
    wider = Schema((*SCHEMA.features, Numeric("income", 0, 1)), SCHEMA.target)
    with pytest.raises(DataError, match="income"):
        Table.from_dask(str(records / "piece-0.parquet"), wider, address)


@pytest.mark.slow
def test_a_cluster_is_reached_by_tls_with_its_own_certificates_and_no_others(records, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tacit.data.cluster.ANSWER_SECONDS", 5.0)
    own, foreign = (distributed.Security.temporary() for _ in range(2))

    def files(security, name: str) -> dict[str, str]:
        given = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
        for key, text in given.items():
            (tmp_path / f"{name}-{key}.pem").write_text(text)
        return {key: str(tmp_path / f"{name}-{key}.pem") for key in given}

    path = str(records / "piece-0.parquet")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, security=own, protocol="tls://", dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address
        table = Table.from_dask(path, SCHEMA, Scheduler(address=address, **files(own, "own")))
        assert_same(totals(table), totals(Table.from_file(path, SCHEMA)))
        del table
        with pytest.raises(DataError, match=r"no Dask scheduler answers at tls://.*certificates"):
            Table.from_dask(path, SCHEMA, Scheduler(address=address, **files(foreign, "foreign")))
        with pytest.raises(DataError, match="no Dask scheduler answers at tcp://"):
            Table.from_dask(path, SCHEMA, address.replace("tls://", "tcp://"))


@pytest.mark.slow
def test_a_file_that_changes_between_passes_is_noticed(records, cluster, tmp_path) -> None:
    path = tmp_path / "changing.parquet"
    path.write_bytes((records / "piece-0.parquet").read_bytes())
    table = Table.from_dask(str(path), SCHEMA, cluster.scheduler_address)
    path.write_bytes((records / "piece-1.parquet").read_bytes())
    with pytest.raises(DataError, match="has changed since it was opened"):
        totals(table)


@pytest.mark.slow
def test_workers_without_memory_or_of_another_version_are_refused(records, tmp_path, monkeypatch) -> None:
    fake = tmp_path / "tacit-99.dist-info"
    fake.mkdir()
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: tacit\nVersion: 99\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))  # which the worker starts with
        other = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
    with other, pytest.raises(DataError, match=r"^worker tcp://.* has tacit 99, this machine .*same versions"):
        Table.from_dask(str(records / "piece-0.parquet"), SCHEMA, other.scheduler_address)
    file, later = see_file(str(records / "piece-0.parquet")), replace(Reading(SCHEMA, (), "skip"), versions=OTHERS)
    with pytest.raises(DataError, match=r"^a worker has tacit .*, the party's machine 99; install the same"):
        list(span_blocks([(file, (0, 7))], later, 7))  # what a worker says that joins later
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=4, memory_limit="512MiB", dashboard_address=":0"
        ) as small,
        pytest.raises(DataError, match=r"may use 0.5 GB, and 4 tasks .*give it more, or fewer threads"),
    ):
        Table.from_dask(str(records / "piece-0.parquet"), SCHEMA, small.scheduler_address)
    monkeypatch.setattr("tacit.data.cluster.ANSWER_SECONDS", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(DataError, match="has no workers"),
    ):
        Table.from_dask(str(records / "piece-0.parquet"), SCHEMA, empty.scheduler_address)
