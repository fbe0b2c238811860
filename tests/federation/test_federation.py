"""The federation: who is asked, what comes back, what is counted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import CenterError, PolicyRefusal, SettingError, WireError
from tacit.federation.engine import InProcess
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.rand import Rng

from .conftest import addend, calls, count, public, raw, single

Make = Callable[..., Federation]


def test_each_party_answers_for_itself(make_parties: Make) -> None:
    parties = make_parties().begin("m")
    answers = parties.ask(count, epsilon=1e6)
    assert {name: value["count"] for name, value in answers.items()} == {"north": 10, "south": 20, "west": 5}
    assert parties.ask(count, parties=["west"], epsilon=1e6).keys() == {"west"}


def test_only_the_sum_of_sealed_replies_is_opened(make_parties: Make) -> None:
    parties = make_parties().begin("m")
    np.testing.assert_array_equal(parties.sum(addend, epsilon=1e6, n_parties=3), [35, 3])
    with pytest.raises(WireError, match="only the sum can be opened"):
        parties.ask(addend, epsilon=1e6, n_parties=3)
    with pytest.raises(WireError, match="did not seal"):
        parties.sum(public, value=1.0)


def test_no_sum_over_fewer_parties_than_the_noise_counts_on(make_parties: Make) -> None:
    with pytest.raises(CenterError, match="a sum over 4 parties"):
        make_parties().begin("m").sum(addend, epsilon=1.0, n_parties=4)


def test_what_travels_is_counted(make_parties: Make) -> None:
    parties = make_parties().begin("m")
    parties.ask(public, value=1.0)
    first = parties.traffic.bytes_up
    assert parties.traffic.rounds == 1
    assert parties.traffic.messages == 6
    assert first == sum(given.n_bytes for given in parties.traffic.given.values())
    parties.sum(addend, epsilon=1.0, n_parties=3)
    assert parties.traffic.rounds == 2
    assert all(len(given.events) == 2 for given in parties.traffic.given.values())
    assert parties.begin("m").traffic.rounds == 0


def test_a_resumed_run_gets_the_same_answers_at_no_cost(make_parties: Make) -> None:
    parties = make_parties()
    first = parties.begin("m", run="r").ask(count, epsilon=0.1)
    again = parties.begin("m", run="r").ask(count, epsilon=0.1)
    other = parties.begin("m").ask(count, epsilon=0.1)
    assert first == again
    assert first != other
    assert parties.guard("north").spent("simulation") == pytest.approx(0.2)


def test_one_refusal_and_nobody_is_charged(make_parties: Make) -> None:
    parties = make_parties(policy={"north": Policy(not_private=["m"]), "south": Policy(not_private=["m"])})
    with pytest.raises(PolicyRefusal, match="'west'"):
        parties.begin("m").ask(raw)
    assert all(parties.guard(name).ledger.n_releases(name) == 0 for name in parties.names)


def test_a_step_with_a_batched_form_serves_all_parties_at_once(make_parties: Make) -> None:
    calls.clear()
    make_parties().begin("m").ask(single)
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
        ({"n_parties": 0}, "n_parties = 0"),
        ({"n_parties": 5}, "4 records cannot be cut into 5"),
        ({"weights": [1, -1]}, "one positive weight"),
        ({"n_parties": 3, "weights": [1, 1]}, "do not fit"),
    ],
)
def test_a_split_that_cannot_be_made_says_why(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Federation.split(np.zeros((4, 2)), [0, 1, 0, 1], **settings)  # type: ignore[arg-type]


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(SettingError, match=r"X of shape \(4,\) and y of shape \(4,\)"):
        Federation.split(np.zeros(4), np.zeros(4))


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
    assert one.begin("m", run="r").ask(count, epsilon=0.1) == two.begin("m", run="r").ask(count, epsilon=0.1)
    assert not make_parties().seeded


def test_no_repr_shows_a_record(make_parties: Make) -> None:
    parties = Federation.split(np.full((6, 2), 123.456), [0, 1] * 3, n_parties=2)
    shown = repr(parties) + repr(parties.guard("party1")) + repr(parties.guard("party1").table)
    assert "123" not in shown
