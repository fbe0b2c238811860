"""The center: it opens the declared sum and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import CenterError
from tacit.rand import Rng
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.envelope import Label, seal

RNG = Rng.seeded(5)


def sealed(
    center: EmbeddedCenter, addends: dict[str, list[int]], context: str = "q", n: int | None = None
) -> dict[str, list[bytes]]:
    n = len(addends) if n is None else n
    return {
        party: seal(
            np.array(addend, dtype=np.int64), Label(context=context, party=party, n_parties=n), center.keys, rng=RNG
        )
        for party, addend in addends.items()
    }


def test_the_sum_is_opened() -> None:
    center = EmbeddedCenter()
    envelopes = sealed(center, {"a": [1, -2], "b": [10, 20], "c": [-(2**61), 2**61]})
    np.testing.assert_array_equal(center.open_sum("q", envelopes), [11 - 2**61, 18 + 2**61])


def test_a_thousand_parties_in_one_sum() -> None:
    center = EmbeddedCenter()
    envelopes = sealed(center, {f"p{i}": [i, 1] for i in range(1000)})
    np.testing.assert_array_equal(center.open_sum("q", envelopes), [999 * 500, 1000])


def test_no_sum_over_fewer_parties_than_the_noise_counts_on() -> None:
    center = EmbeddedCenter()
    envelopes = sealed(center, {"a": [1], "b": [2], "c": [3]})
    del envelopes["c"]
    with pytest.raises(CenterError, match="a sum over 3 parties be opened; 2 are in it"):
        center.open_sum("q", envelopes)


def test_no_second_sum_over_other_parties_of_the_same_question() -> None:
    center = EmbeddedCenter()
    envelopes = sealed(center, {"a": [1], "b": [2], "c": [3]}, n=2)
    assert center.open_sum("q", envelopes)[0] == 6
    assert center.open_sum("q", envelopes)[0] == 6
    del envelopes["c"]
    with pytest.raises(CenterError, match="opened before over other parties"):
        center.open_sum("q", envelopes)


def test_an_envelope_of_another_question_or_party_is_refused() -> None:
    center = EmbeddedCenter()
    envelopes = sealed(center, {"a": [1], "b": [2]})
    with pytest.raises(CenterError, match="another question or party"):
        center.open_sum("another", envelopes)
    with pytest.raises(CenterError, match="another question or party"):
        center.open_sum("q", {"a": envelopes["b"], "b": envelopes["a"]})


def test_what_is_sealed_for_a_program_is_never_opened() -> None:
    center = EmbeddedCenter()
    label = Label(context="q", party="a", n_parties=1, use="curvature")
    with pytest.raises(CenterError, match="sealed its part as 'curvature', not for opening"):
        center.open_sum("q", {"a": seal(np.array([1]), label, center.keys, rng=RNG)})


def test_addends_of_different_lengths_and_an_empty_sum_are_refused() -> None:
    center = EmbeddedCenter()
    with pytest.raises(CenterError, match="'a', 'b' state different terms of one sum"):
        center.open_sum("q", sealed(center, {"a": [1], "b": [2, 3]}))
    with pytest.raises(CenterError, match="no party sent an envelope"):
        center.open_sum("q", {})


def test_a_party_with_too_few_envelopes_is_named() -> None:
    center = EmbeddedCenter()
    envelopes = sealed(center, {"a": [1], "b": [2]})
    envelopes["b"].pop()
    with pytest.raises(CenterError, match="party 'b' sent 2 envelopes; the center has 3 nodes"):
        center.open_sum("q", envelopes)


def test_only_three_keys_make_a_center() -> None:
    label = Label(context="q", party="a", n_parties=1)
    for keys in (EmbeddedCenter().keys[:2], EmbeddedCenter().keys * 2):
        with pytest.raises(CenterError, match=f"has 3 nodes; {len(keys)} keys were given"):
            seal(np.array([1]), label, keys, rng=RNG)


def test_shares_of_different_sealings_do_not_open() -> None:
    center = EmbeddedCenter()
    one, two = (sealed(center, {"a": [1], "b": [2]}) for _ in range(2))
    one["a"][1] = two["a"][1]
    with pytest.raises(CenterError, match="node 1 holds other values than both other nodes"):
        center.open_sum("q", one)


def test_shares_of_a_number_that_is_too_large_do_not_open() -> None:
    center = EmbeddedCenter()
    with pytest.raises(CenterError, match="does not fit the declared grid"):
        center.open_sum("q", sealed(center, {"a": [2**62], "b": [2**62]}))


def test_nodes_that_cannot_compute_say_who_can() -> None:
    center = EmbeddedCenter()
    label = Label(context="q", party="a", n_parties=1, use="likelihood")
    center.keep("run", "likelihood", "q", {"a": seal(np.array([1]), label, center.keys, rng=RNG)}, ())
    with pytest.raises(CenterError, match=r"no engine; ask a center that computes: `center.computing\(\)`"):
        center.compute("run", "accept")
