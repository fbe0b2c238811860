"""The federation: who is asked, what comes back, what is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import CenterError, PolicyRefusal, SettingError, UserError, WireError
from tacit.federation.engine import InProcess
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.rand import Rng

from .conftest import Probe, addend, calls, count, raw, single

Make = Callable[..., Federation]


def test_each_party_answers_for_itself(make_parties: Make) -> None:
    channel = make_parties().begin(Probe((count,), epsilon=1e6))
    answers = channel.ask(count)
    assert {name: value["count"] for name, value in answers.items()} == {"north": 10, "south": 20, "west": 5}
    assert channel.ask(count, parties=["west"]).keys() == {"west"}


def test_only_the_sum_of_sealed_replies_is_opened(make_parties: Make) -> None:
    channel = make_parties().begin(Probe((addend, count), epsilon=1e6))
    np.testing.assert_array_equal(channel.sum(addend), [35, 3])
    with pytest.raises(WireError, match="only the sum can be opened"):
        channel.ask(addend)
    with pytest.raises(WireError, match="did not seal"):
        channel.sum(count)


def test_no_sum_over_fewer_parties_than_the_noise_counts_on(make_parties: Make) -> None:
    with pytest.raises(CenterError, match="a sum over 4 parties"):
        make_parties().begin(Probe((addend,), n_parties=4)).sum(addend)


def test_what_travels_is_counted(make_parties: Make) -> None:
    parties, probe = make_parties(), Probe((count, addend))
    channel = parties.begin(probe)
    channel.ask(count)
    first = channel.traffic.bytes_up
    assert channel.traffic.rounds == 1
    assert channel.traffic.messages == 6
    assert first == sum(given.n_bytes for given in channel.traffic.given.values())
    channel.sum(addend)
    assert channel.traffic.rounds == 2
    assert all(len(given.events) == 2 for given in channel.traffic.given.values())
    assert parties.begin(probe).traffic.rounds == 0


def test_a_resumed_run_gets_the_same_answers_at_no_cost(make_parties: Make) -> None:
    parties, probe = make_parties(), Probe((count,), times=1)
    named = Federation(parties.engine, parties.center, run="r")
    first, again = (named.begin(probe).ask(count) for _ in range(2))
    other = parties.begin(probe).ask(count)
    assert first == again
    assert first != other
    assert parties.guard("north").spent("simulation") == pytest.approx(0.2)


def test_one_refusal_and_nobody_is_charged(make_parties: Make) -> None:
    parties = make_parties(policy={"north": Policy(not_private=["m"]), "south": Policy(not_private=["m"])})
    with pytest.raises(PolicyRefusal, match="'west'"):
        parties.begin(Probe((raw,))).ask(raw)
    assert all(parties.guard(name).ledger.n_releases(name) == 0 for name in parties.names)


def test_a_step_with_a_batched_form_serves_all_parties_at_once(make_parties: Make) -> None:
    calls.clear()
    make_parties().begin(Probe((single,))).ask(single)
    assert calls == ["many"]


def test_split_by_groups_keeps_every_record() -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.array([1, 0, 1, 0, 1, 0])
    parties = Federation.split(X, y, groups=["b", "a", "b", "a", "c", "a"])
    assert parties.sizes == {"a": 3, "b": 2, "c": 1}
    got = np.concatenate([parties.guard(name).table.arrays()[0] for name in parties.names])
    np.testing.assert_array_equal(np.sort(got, axis=0), X)
    np.testing.assert_array_equal(parties.guard("b").table.arrays()[0], X[[0, 2]])
    np.testing.assert_array_equal(parties.labels, [0, 1])


def test_split_by_weights_is_in_proportion_and_repeatable() -> None:
    X, y = np.arange(200.0).reshape(100, 2), np.arange(100) % 2
    one, two = (Federation.split(X, y, weights=[1, 2, 7]) for _ in range(2))
    assert list(one.sizes.values()) == [10, 20, 70]
    for name in one.names:
        np.testing.assert_array_equal(one.guard(name).table.arrays()[0], two.guard(name).table.arrays()[0])
    other = Federation.split(X, y, weights=[1, 2, 7], seed=1)
    assert not np.array_equal(one.guard("party1").table.arrays()[0], other.guard("party1").table.arrays()[0])
    assert list(Federation.split(X[:5], y[:5], weights=[1e-9, 1, 1]).sizes.values()) == [1, 2, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": ["a"]}, "one party for each of 4 records"),
        ({"groups": list("aabb"), "n_parties": 2}, "not both"),
        ({"groups": ["a", "b", None, "a"]}, "1 records without a party .*row 2"),
        ({"groups": [1.0, np.nan, 2.0, np.nan]}, "2 records without a party .*row 1"),
        ({"n_parties": 0}, "n_parties = 0"),
        ({"n_parties": 2.5}, "n_parties = 2.5 is no whole number"),
        ({"n_parties": True}, "n_parties = True is no whole number"),
        ({"n_parties": "2"}, "n_parties = '2' is no whole number"),
        ({"n_parties": 5}, "4 records cannot be cut into 5"),
        ({"weights": [1, -1]}, "one positive weight"),
        ({"n_parties": 3, "weights": [1, 1]}, "do not fit"),
    ],
)
def test_a_split_that_cannot_be_made_says_why(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Federation.split(np.zeros((4, 2)), [0, 1, 0, 1], **settings)  # type: ignore[arg-type]


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(SettingError, match=r"X of shape \(4,\) is no matrix"):
        Federation.split(np.zeros(4), np.zeros(4))
    with pytest.raises(SettingError, match=r"X of shape \(4, 2\) and y of shape \(3,\) do not fit"):
        Federation.split(np.zeros((4, 2)), [0, 1, 0])


def frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"age": [40, 50, 60, 70], "dose": [0.1, 0.2, 0.3, 0.4]} | columns)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            frame(dose=[0.1, np.nan, 0.3, np.nan]),
            r"2 values that are no finite numbers, the first \(NaN\) in row 1, column dose",
        ),
        (frame(dose=[0.1, 0.2, np.inf, 0.4]), r"the first \(inf\) in row 2, column dose"),
        (frame(dose=pd.array([1, None, 3, 4], dtype="Int64")), r"the first \(NaN\) in row 1, column dose"),
        (np.array([[1, 2], [3, np.nan], [5, 6], [7, 8]]), r"the first \(NaN\) in row 1, column 1"),
        (frame(sex=["f", "m", "f", "m"]), "no number in column sex; give numbers, or declare categories in a Schema"),
        (frame(sex=pd.Categorical(["f", "m", "f", "m"])), "no number in column sex"),
        (frame(when=pd.date_range("2020-01-01", periods=4)), "no number in column when"),
        (np.array([["1", "2"]] * 4), "no number in column 0, 1"),
        (sparse.csr_matrix(np.eye(4)), r"X is a sparse matrix; give a dense one, for instance X.toarray\(\)"),
        (np.eye(4) * 1j, "Complex data not supported"),
        (np.zeros((4, 0)), r"0 feature\(s\)"),
        ([[1, 2], [3], [4, 5], [6, 7]], "rows have different lengths"),
    ],
)
def test_split_takes_finite_numbers_only(X: object, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Federation.split(X, [0, 1, 0, 1], n_parties=2)  # type: ignore[arg-type]
    assert isinstance(caught.value, UserError)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.linspace(0, 1, 60), "y holds 60 different numbers with a point, which look continuous; give classes"),
        (np.arange(60.0), "y holds 60 different numbers with a point"),
        (np.repeat([0.5, 1.0], 30), "y holds 2 different numbers with a point"),
        ([0.0, 1.0] * 29 + [np.nan, 1.0], r"1 missing labels \(NaN or None\), the first in row 58"),
        (["a", "b"] * 29 + [None, "b"], "1 missing labels .*row 58"),
        (np.array(["a", 1] * 30, dtype=object), "labels of several kinds"),
        ([1] * 60, "y has 1 class; a classifier needs records of at least 2"),
        (None, "requires y to be passed"),
    ],
)
def test_split_takes_class_labels_only(y: object, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Federation.split(np.zeros((60, 1)), y, n_parties=2)  # type: ignore[arg-type]
    assert isinstance(caught.value, UserError)


def test_whole_numbers_text_and_truth_values_are_labels() -> None:
    X = np.zeros((60, 1))
    for y in (np.arange(60), [0.0, 1.0] * 30, ["a", "b"] * 30, [True, False] * 30):
        parties = Federation.split(X, y, n_parties=2)
        np.testing.assert_array_equal(parties.labels, np.unique(y))


def test_a_data_frames_columns_keep_their_names() -> None:
    y = [0, 1, 0, 1]
    assert Federation.split(frame(), y, n_parties=2).schema.feature_names == ("age", "dose")
    assert Federation.split(frame(), y, n_parties=2, feature_names=["a", "b"]).schema.feature_names == ("a", "b")
    assert Federation.split(frame().to_numpy(), y, n_parties=2).schema.feature_names == ("x0", "x1")
    assert Federation.split(frame().set_axis([7, 8], axis=1), y, n_parties=2).schema.feature_names == ("x0", "x1")
    taken = Federation.split(frame().set_axis(["y", "target"], axis=1), y, n_parties=2)
    assert taken.schema.target.name == "target1"
    objects = frame(dose=np.array([1, 2.5, True, 4], dtype=object), old=[False, True, True, True])
    got = Federation.split(objects, y, groups=["a"] * 4).guard("a").table.arrays()[0]
    np.testing.assert_array_equal(got, [[40, 1, 0], [50, 2.5, 1], [60, 1, 1], [70, 4, 1]])


def test_whoever_splits_holds_all_data_so_nothing_is_refused() -> None:
    X, y = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    assert Federation.split(X, y, n_parties=2).begin(Probe((raw,))).ask(raw).keys() == {"party1", "party2"}
    for policy in (Policy(), {"party1": Policy.disclosing_everything()}):
        with pytest.raises(PolicyRefusal, match=r"'party\d': 'm' would release what no epsilon bounds"):
            Federation.split(X, y, n_parties=2, policy=policy).begin(Probe((raw,))).ask(raw)


def test_the_policy_that_discloses_everything_says_so() -> None:
    policy = Policy.disclosing_everything()
    assert "not_private=every method" in repr(policy)
    assert "any name" in policy.not_private
    assert list(policy.not_private) == ["every method"]
    assert policy.min_records_exact == 1


def test_files_come_as_a_mapping(tmp_path: Path) -> None:
    for name, n in (("north", 4), ("two words", 6)):
        rows = pd.DataFrame({"x0": np.arange(n), "x1": 1.0, "y": np.arange(n) % 2})
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    files = {name: tmp_path / f"{name}.csv" for name in ("north", "two words")}
    schema = Schema.of_arrays(2, ["0", "1"])
    parties = Federation.from_files(schema, files, study="s", dropouts=1)
    assert parties.sizes == {"north": 4, "two words": 6}
    assert (parties.study, parties.quorum) == ("s", 1)
    with pytest.raises(PolicyRefusal, match="would release what no epsilon bounds"):
        parties.begin(Probe((raw,))).ask(raw)
    with pytest.raises(SettingError, match="files is a list; give the parties' names with their paths, as a dict"):
        Federation.from_files(schema, list(files.values()))  # type: ignore[arg-type]


def test_parties_need_one_schema_and_names_of_their_own(make_parties: Make) -> None:
    with pytest.raises(SettingError, match="at least one party"):
        Federation.from_tables({})
    other = Table.from_arrays(np.zeros((2, 1)), [0, 1], Schema.of_arrays(1, ["0", "1"]))
    mixed = make_parties()
    with pytest.raises(SettingError, match="different schemas"):
        Federation.from_tables({"north": mixed.guard("north").table, "odd": other})
    with pytest.raises(SettingError, match="same name"):
        InProcess([mixed.guard("north"), mixed.guard("north")])


def test_a_seeded_federation_repeats_itself_and_says_so(make_parties: Make) -> None:
    one, two = (make_parties(rng=Rng.seeded(7)) for _ in range(2))
    assert one.seeded
    assert one.begin(Probe((count,))).ask(count) == two.begin(Probe((count,))).ask(count)
    assert not make_parties().seeded


def test_no_repr_shows_a_record(make_parties: Make) -> None:
    parties = Federation.split(np.full((6, 2), 123.456), [0, 1] * 3, n_parties=2)
    shown = repr(parties) + repr(parties.guard("party1")) + repr(parties.guard("party1").table)
    assert "123" not in shown
