"""A party wants to decide the sum alone: it adds what no records could give, and the nodes name it before they open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import wire
from tacit.errors import AddendRefused, CenterError, SettingError
from tacit.privacy.noise.grid import NoiseGrid, VectorSum, exact_grid, gaussian_grid, pure_grid
from tacit.rand import Rng
from tacit.record import encode_record, from_value
from tacit.secure import proof
from tacit.secure.bound import NormBound, ProofTerms, terms_of
from tacit.secure.center.message import Boxes, Check, Sum
from tacit.secure.envelope import Label, seal
from tacit.secure.ring import Ints, Words, extend, whole
from tests.secure.center.signed_center import RNG, SignedCenter

NORM = 1000
HONEST = np.array([300, -400, 500, 0])


@pytest.fixture(scope="module")
def center() -> SignedCenter:
    return SignedCenter(["north", "south", "west"])


def refused(center: SignedCenter, addend: object, context: str, bound: int = NORM) -> None:
    """The attacker is `west`; the nodes name it, open nothing, and then add up the others."""
    honest = {name: center.sealed(name, HONEST, NORM, context=context, n_parties=2) for name in ("north", "south")}
    west = center.sealed("west", addend, bound, context=context, n_parties=2)  # type: ignore[arg-type]
    with pytest.raises(AddendRefused, match="party 'west'") as caught:
        center.open_sum(context, {**honest, "west": west})
    assert list(caught.value.parties) == ["west"]
    np.testing.assert_array_equal(center.open_sum(context, honest), 2 * HONEST)


def test_a_party_cannot_add_more_than_its_records_could(center: SignedCenter) -> None:
    refused(center, [10**7, -(10**7), 123_000, 0], "large")
    refused(center, [501, 501, 501, 500], "every entry a little above")
    refused(center, [NORM + 1, 0, 0, 0], "one step above")


def test_an_honest_party_at_the_very_bound_is_never_refused(center: SignedCenter) -> None:
    addends = {"north": [NORM, 0, 0, 0], "south": [-500, 500, -500, 500], "west": [0, 0, 0, 0]}
    envelopes = {name: center.sealed(name, addend, NORM, context="edge") for name, addend in addends.items()}
    np.testing.assert_array_equal(center.open_sum("edge", envelopes), [500, 500, -500, 500])


HALF, THIRD = 1 << 127, (1 << 128) // 3
WRAPPED = {
    "two halves cancel in every projection with signs": [HALF, HALF, 0, 0],
    "all halves": [HALF] * 4,
    "halves beside small numbers": [HALF + 300, HALF - 400, 500, 0],
    "thirds cancel in sums of three": [THIRD, THIRD, THIRD + 1, 0],
    "the square of 2^64 is nothing": [1 << 64, 0, 0, 0],
    "so is that of 2^127": [HALF, 0, 0, 0],
    "a number whose square is small": [(1 << 64) + 1, (1 << 64) - 1, 0, 0],
    "the high word alone": [1 << 100, -(1 << 100), 0, 0],
}


@pytest.mark.parametrize("pattern", WRAPPED)
def test_numbers_that_wrap_around_do_not_pass(center: SignedCenter, pattern: str) -> None:
    refused(center, whole(WRAPPED[pattern]), pattern)


def test_digits_that_are_none_do_not_pass(center: SignedCenter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attacker meets every sum that is checked, with "digits" that are larger than 1, or below 0."""

    def one_large_digit(x: Words, terms: ProofTerms, challenge: bytes) -> Ints:
        numbers = x[:, 0].view(np.int64)
        y = project(x[None], terms, [challenge])[0, :, 0].view(np.int64) + terms.offset
        v = [block.norm**2 - int(numbers @ numbers) for block in terms.bound]
        digits = np.zeros(terms.n_digits, dtype=np.int64)
        starts = np.cumsum([0, *[terms.range_bits] * terms.n_projections])
        digits[starts] = [*y.tolist(), *v]  # the least digit of each is all of it
        return digits

    project = proof._project
    monkeypatch.setattr(proof, "_binary_digits", one_large_digit)
    west = center.sealed("west", [10**7, 0, 0, 0], NORM, context="digits")
    monkeypatch.undo()
    others = {name: center.sealed(name, HONEST, NORM, context="digits") for name in ("north", "south")}
    with pytest.raises(AddendRefused, match="party 'west'"):
        center.open_sum("digits", {**others, "west": west})


def test_a_party_cannot_state_a_bound_of_its_own(center: SignedCenter) -> None:
    refused(center, [10**7, 0, 0, 0], "a larger bound", bound=10**8)
    refused(center, [10**7, 0, 0, 0, 0], "more numbers", bound=10**8)
    pair = SignedCenter(["a", "b"])
    envelopes = {"a": pair.sealed("a", HONEST, NORM), "b": pair.sealed("b", HONEST, NORM + 1)}
    with pytest.raises(CenterError, match="'a', 'b' state different terms of one sum"):
        pair.open_sum("q", envelopes)


def test_a_party_cannot_leave_its_proof_out(center: SignedCenter) -> None:
    """It seals as parties of a simulation do, or takes another addend's proof."""
    contents = [10**7, 0, 0, 0]
    others = {name: center.sealed(name, HONEST, NORM, context="none") for name in ("north", "south")}
    signed = center.sealed("west", contents, NORM, context="none")
    honest = center.sealed("west", HONEST, NORM, context="none")
    for west in ([signed[0], honest[1], honest[2]], [honest[0], signed[1], signed[2]]):
        with pytest.raises(AddendRefused, match="party 'west'"):
            center.open_sum("none", {**others, "west": west})
    bare = seal(np.array(contents), Label(context="none", party="west", n_parties=1), center.keys, rng=RNG)
    with pytest.raises(AddendRefused, match="party 'west': an envelope is not signed"):
        center.open_sum("none", {**others, "west": bare})


def test_nothing_is_opened_before_all_nodes_have_told_of_the_proofs(center: SignedCenter) -> None:
    """The coordinator leaves the check out, leaves a node's word out, or gives a node its own word back."""
    envelopes = {name: center.sealed(name, [10**7, 0, 0, 0], NORM, context="skip") for name in center.signers}
    group = tuple(sorted(center.signers))
    own = [{name: sealed[p] for name, sealed in envelopes.items()} for p in range(3)]

    def told(p: int) -> dict[str, bytes]:
        request = Check(context="skip", use="open", envelopes=own[p], sum_group=group, nodes=center.keys)
        reply = wire.decode(center.nodes[p].handle(encode_record(request)))
        assert isinstance(reply, dict)
        return dict(from_value(Boxes, reply["done"]).boxes)

    def answer(boxes: dict[str, bytes]) -> dict[str, object]:
        request = Sum(context="skip", envelopes=own[0], sum_group=group, boxes=boxes)
        reply = wire.decode(center.nodes[0].handle(encode_record(request)))
        assert isinstance(reply, dict)
        return reply

    first, second = center.keys[1].hex(), center.keys[2].hex()
    true = {first: told(1)[center.keys[0].hex()], second: told(2)[center.keys[0].hex()]}
    assert list(answer(true)["misfits"]) == list(group)  # type: ignore[call-overload]
    for boxes in (
        {},
        {first: true[first]},
        {first: true[first], second: true[first]},
        {first: told(0)[first], second: told(0)[second]},
        {first: true[first][:-1] + bytes([true[first][-1] ^ 1]), second: true[second]},
        {first: true[first], RNG.bytes(32).hex(): true[second]},
    ):
        assert list(answer(boxes)) == ["refused"]


def grid_of(kind: str, dimension: int) -> NoiseGrid:
    total = VectorSum(dimension=dimension, sensitivity=1.0, value_bound=50.0, norm_bound=50.0, n_parties=3, colluders=1)
    match kind:
        case "gaussian":
            return gaussian_grid(total, epsilon=0.3, delta=1e-6)
        case "pure":
            return pure_grid(total, epsilon=0.3)
    return exact_grid(total)


@settings(deadline=None, max_examples=15)
@given(st.sampled_from(["gaussian", "pure", "exact"]), st.sampled_from([1, 7, 60]), st.integers(0, 2**32))
def test_no_honest_addend_is_refused_with_its_noise(kind: str, dimension: int, seed: int) -> None:
    """Vectors at the bound, in one coordinate and in all, with real noise: many draws, and one through nodes."""
    grid, rng = grid_of(kind, dimension), Rng.seeded(seed)
    bound = (NormBound(size=dimension, norm=grid.norm_bound),)
    assert terms_of(bound).is_exact
    spike, flat = np.zeros(dimension), np.full(dimension, 50 / np.sqrt(dimension))
    spike[0] = -50.0
    for value in (spike, flat):
        drawn = grid.to_grid(np.tile(value, (200, 1)), rng=rng).astype(np.float64)
        assert np.linalg.norm(drawn, axis=1).max() < grid.norm_bound
    pair = SignedCenter(["a", "b"])
    addends = {"a": grid.to_grid(spike, rng=rng), "b": grid.to_grid(flat, rng=rng)}
    opened = pair.open_sum("q", {name: pair.sealed(name, addend, bound) for name, addend in addends.items()})
    np.testing.assert_array_equal(opened, addends["a"] + addends["b"])


def test_a_bound_is_no_larger_than_noise_and_records_need() -> None:
    """What a party may move within the bound is of the order of what its records and noise move."""
    for kind, most in (("exact", 1.001), ("gaussian", 4.0), ("pure", 40.0)):
        grid = grid_of(kind, 60)
        typical = float(np.linalg.norm(grid.to_grid(np.full(60, 50 / np.sqrt(60)), rng=Rng.seeded(1)).astype(float)))
        assert grid.norm_bound < most * typical


def test_too_many_or_too_large_numbers_are_refused_by_name() -> None:
    with pytest.raises(SettingError, match="too many or too large to be checked"):
        terms_of((NormBound(size=1 << 22, norm=1 << 60),))


def test_coarse_bounds_still_stop_what_is_far_outside(center: SignedCenter) -> None:
    """Numbers of 62 bits are too large for an exact check: then no entry exceeds a small multiple of what it may."""
    norm = 1 << 62
    assert not terms_of((NormBound(size=4, norm=norm),)).is_exact
    edge: Words = extend(np.array([norm // 2, 0, 0, 0]))
    honest = {name: center.sealed(name, edge, norm, context="coarse") for name in ("north", "south")}
    west = center.sealed("west", whole([1 << 67, 0, 0, 0]), norm, context="coarse")
    with pytest.raises(AddendRefused, match="party 'west'"):
        center.open_sum("coarse", {**honest, "west": west})
    np.testing.assert_array_equal(center.open_sum("coarse", honest), [norm, 0, 0, 0])
