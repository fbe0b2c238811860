"""The encrypted inverse: parties multiply with it, and only the sum of their products is opened."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit import wire
from tacit.errors import AddendRefused, CenterError, SettingError, WireError
from tacit.rand import Rng
from tacit.record import decode_record, encode_record
from tacit.secure.center.process import ProcessCenter
from tacit.secure.center.product import ADDS, USE, EncryptedInverse, Form, ProductTerms
from tacit.secure.envelope import Label, seal_message
from tacit.secure.paillier import key as paillier

from .conftest import curvature, keep

RNG = Rng.system()
D = 9  # more than one ciphertext a column
FORM = Form(n_vectors=1, fraction_bits=40)


@pytest.fixture(scope="module")
def inverse(computing: ProcessCenter) -> EncryptedInverse:
    keep(computing, "local", curvature=curvature(D, 100))
    computing.compute("local", "invert")
    return computing.encrypt_inverse("local", 3)


def sealed(
    center: ProcessCenter, inverse: EncryptedInverse, gradients: np.ndarray, context: str, n_parties: int = 3
) -> dict[str, bytes]:
    envelopes = {}
    for j, gradient in enumerate(gradients):
        label = Label(context=context, party=f"p{j}", n_parties=n_parties, use=USE)
        integers = np.rint(gradient * 2.0**40).astype(np.int64)
        envelopes[label.party] = seal_message(inverse.times(integers, rng=RNG), label, center.keys[ADDS])
    return envelopes


@pytest.mark.parametrize("shape", [(3, D), (3, D, 2), (1, D)])
def test_the_sum_of_the_products_is_opened(
    computing: ProcessCenter, inverse: EncryptedInverse, shape: tuple[int, ...]
) -> None:
    gradients = np.random.default_rng(0).normal(size=shape)
    envelopes = sealed(computing, inverse, gradients, str(shape), n_parties=1)
    form = Form(n_vectors=int(np.prod(shape[2:])), fraction_bits=40)
    step = computing.open_product("local", str(shape), envelopes, form)
    expected = np.linalg.solve(curvature(D, 100), gradients.sum(axis=0).reshape(D, -1))
    assert step.shape == expected.shape
    np.testing.assert_allclose(step, expected, atol=1e-7)


def test_no_digit_is_told_beyond_the_fortieth(computing: ProcessCenter, inverse: EncryptedInverse) -> None:
    """The same product opens to values that differ at random in the digits below, and in no digit above."""
    gradients = np.full((2, D), 2.0**-20)
    envelopes = sealed(computing, inverse, gradients, "twice", n_parties=1)
    one, two = (computing.open_product("local", "twice", envelopes, FORM) for _ in range(2))
    assert np.all(np.abs(one - two) < 2.0**-40)
    assert np.any(one != two)


def test_it_travels_in_a_question(inverse: EncryptedInverse) -> None:
    assert decode_record(EncryptedInverse, encode_record(inverse)) == inverse
    with pytest.raises(WireError, match="a message is no EncryptedInverse"):
        decode_record(EncryptedInverse, wire.encode({"key": b""}))


def test_two_products_of_one_vector_have_nothing_in_common(inverse: EncryptedInverse) -> None:
    vector = np.arange(D)
    one, two = (inverse.times(vector, rng=RNG) for _ in range(2))
    width = len(inverse.key) // 3 * 2
    blocks = [message[i : i + width] for message in (one, two) for i in range(0, len(message), width)]
    assert len(set(blocks)) == len(blocks)


def test_what_a_party_bound_into_its_product_is_checked(computing: ProcessCenter, inverse: EncryptedInverse) -> None:
    gradients = np.ones((3, D))
    envelopes = sealed(computing, inverse, gradients, "checked", n_parties=2)
    with pytest.raises(CenterError, match="belongs to another question or party"):
        computing.open_product("local", "another", envelopes, FORM)
    with pytest.raises(CenterError, match="a sum over 2 parties be opened; 1 are in it"):
        computing.open_product("local", "checked", {"p0": envelopes["p0"]}, FORM)
    computing.open_product("local", "checked", envelopes, FORM)
    with pytest.raises(CenterError, match="opened before over other parties"):
        computing.open_product("local", "checked", {p: envelopes[p] for p in ("p0", "p1")}, FORM)
    label = Label(context="use", party="p0", n_parties=1)
    message = inverse.times(np.ones(D, dtype=np.int64), rng=RNG)
    with pytest.raises(CenterError, match="sealed its part as 'open', not as 'product'"):
        computing.open_product("local", "use", {"p0": seal_message(message, label, computing.keys[ADDS])}, FORM)


def test_only_the_adding_node_can_open_an_envelope(computing: ProcessCenter, inverse: EncryptedInverse) -> None:
    label = Label(context="key", party="p0", n_parties=1, use=USE)
    envelope = seal_message(inverse.times(np.ones(D, dtype=np.int64), rng=RNG), label, computing.keys[0])
    with pytest.raises(CenterError, match="sealed for another key, or altered"):
        computing.open_product("local", "key", {"p0": envelope}, FORM)


@pytest.mark.parametrize("message", [b"", b"\x00" * 512, b"\xff" * 1024])
def test_garbage_is_refused_and_the_center_goes_on(
    computing: ProcessCenter, inverse: EncryptedInverse, message: bytes
) -> None:
    context = f"garbage {len(message)}"
    label = Label(context=context, party="p0", n_parties=1, use=USE)
    with pytest.raises(AddendRefused, match=r"'p0': its product cannot be read: .*(vectors have|no ciphertext under)"):
        computing.open_product("local", context, {"p0": seal_message(message, label, computing.keys[ADDS])}, FORM)
    envelopes = sealed(computing, inverse, np.zeros((2, D)), f"after {context}")
    with pytest.raises(CenterError, match="a sum over 3 parties be opened; 2 are in it"):
        computing.open_product("local", f"after {context}", envelopes, FORM)


def test_an_envelope_that_is_not_bytes_is_sent_to_no_node(computing: ProcessCenter, inverse: EncryptedInverse) -> None:
    with pytest.raises(WireError, match=r"Product\.envelopes is a text where bytes is due"):
        computing.open_product("local", "text", {"p0": "text"}, FORM)  # type: ignore[dict-item]


def test_more_parties_than_the_slots_were_made_for_are_refused(
    computing: ProcessCenter, inverse: EncryptedInverse
) -> None:
    with pytest.raises(CenterError, match="4 products cannot be added; up to 3 were agreed on"):
        computing.open_product("local", "many", sealed(computing, inverse, np.ones((4, D)), "many"), FORM)


def test_without_an_inverse_there_is_nothing_to_encrypt(computing: ProcessCenter) -> None:
    with pytest.raises(CenterError, match="the run keeps no inverse to encrypt"):
        computing.encrypt_inverse("empty", 3)
    with pytest.raises(CenterError, match="the run has no encrypted inverse"):
        computing.open_product("empty", "q", {}, FORM)


def test_terms_and_forms_that_make_no_sense_are_refused(inverse: EncryptedInverse) -> None:
    with pytest.raises(SettingError, match="at least one feature and one party"):
        ProductTerms(n_features=0, n_parties=1)
    for form in ({"n_vectors": 0, "fraction_bits": 40}, {"n_vectors": 1, "fraction_bits": 99}):
        with pytest.raises(SettingError, match="0 to 80 fraction bits"):
            Form(**form)
    with pytest.raises(WireError, match="was announced; the message has"):
        replace(inverse, matrix=inverse.matrix[:-1]).times(np.ones(D, dtype=np.int64), rng=RNG)


def test_the_key_is_long_enough(inverse: EncryptedInverse) -> None:
    assert paillier.PublicKey.from_bytes(inverse.key).bits == 2048
