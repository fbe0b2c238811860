"""Paillier: sums and products come out right under encryption, bounds are counted, and nothing else gets in."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

pytest.importorskip("phe")
pytest.importorskip("gmpy2")

from phe import paillier as phe_paillier

from tacit.errors import CenterError, SettingError, WireError
from tacit.rand import Rng
from tacit.secure.paillier import key as paillier
from tacit.secure.paillier.key import PrivateKey, PublicKey, uniform_below
from tacit.secure.paillier.vector import (
    MASK_BITS,
    EncryptedMatrix,
    EncryptedVector,
    Packing,
    product_packing,
)

RNG = Rng.seeded(7)
SHARE = 1 << 128


@pytest.fixture(autouse=True)
def small_keys_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "LEAST_BITS", 512)


@cache
def small_key() -> PrivateKey:
    least, paillier.LEAST_BITS = paillier.LEAST_BITS, 512
    try:
        return PrivateKey.generate(512, rng=Rng.seeded(1))
    finally:
        paillier.LEAST_BITS = least


KEY = small_key()
PUBLIC = KEY.public_key
numbers = st.integers(0, PUBLIC.n - 1)


# --- the cipher ------------------------------------------------------------------------------------------------------


@given(numbers, numbers, st.integers(-(2**80), 2**80))
@settings(max_examples=60, deadline=None)
def test_sums_and_products_come_out_right(a: int, b: int, factor: int) -> None:
    A, B = PUBLIC.encrypt(a, rng=RNG), PUBLIC.encrypt(b, rng=RNG)
    assert KEY.decrypt(A) == a
    assert KEY.decrypt(PUBLIC.add(A, B)) == (a + b) % PUBLIC.n
    assert KEY.decrypt(PUBLIC.multiply(A, factor)) == a * factor % PUBLIC.n
    assert KEY.decrypt(PUBLIC.rerandomise(A, rng=RNG)) == a


@given(st.integers(-(2**500), 2**500))
@settings(deadline=None)
def test_negative_numbers_come_back(a: int) -> None:
    assert KEY.decrypt_signed(PUBLIC.encrypt(a, rng=RNG)) == a


def test_another_implementation_reads_ours_and_we_read_its() -> None:
    other_public = phe_paillier.PaillierPublicKey(PUBLIC.n)
    other_private = phe_paillier.PaillierPrivateKey(other_public, KEY._phe.p, KEY._phe.q)
    for number in (0, 1, PUBLIC.n - 1, 12345678901234567890):
        assert other_private.raw_decrypt(PUBLIC.encrypt(number, rng=RNG)) == number
        assert KEY.decrypt(int(other_public.raw_encrypt(number))) == number


@given(numbers, st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_the_owner_encrypts_as_everybody_does(number: int, seed: int) -> None:
    """The same draws give the very same ciphertext, by another way."""
    assert KEY.encrypt(number, rng=Rng.seeded(seed)) == PUBLIC.encrypt(number, rng=Rng.seeded(seed))


def test_ciphertexts_are_fresh_and_randomisers_are_nth_powers() -> None:
    """A ciphertext of 0 is an n-th power modulo n^2, that is, its (p-1)(q-1)-th power is 1."""
    order = (KEY._phe.p - 1) * (KEY._phe.q - 1)
    drawn = [PUBLIC.encrypt(0, rng=RNG) for _ in range(50)]
    assert len(set(drawn)) == 50
    assert all(pow(int(c), int(order), PUBLIC.n**2) == 1 for c in drawn)
    again = PUBLIC.rerandomise(drawn[0], rng=RNG)
    assert again != drawn[0]


def test_ciphertexts_of_different_numbers_look_alike() -> None:
    """Low and high bytes of ciphertexts of 0 and of 1: no difference that a chi-square test could find."""
    for position in (0, -1):
        counts = [
            np.bincount([PUBLIC.write([PUBLIC.encrypt(m, rng=RNG)])[position] // 32 for _ in range(800)], minlength=8)
            for m in (0, 1)
        ]
        table = np.array(counts)[:, np.array(counts).sum(axis=0) > 10]
        assert stats.chi2_contingency(table).pvalue > 1e-4


def test_keys_have_the_length_asked_for_and_a_seed_gives_the_same_one() -> None:
    one, two = (PrivateKey.generate(768, rng=Rng.seeded(9)).public_key for _ in range(2))
    assert one == two
    assert one.bits == 768
    assert PrivateKey.generate(768, rng=Rng.system()).public_key != one


def test_a_key_of_full_length_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "LEAST_BITS", 2048)
    key = PrivateKey.generate(rng=Rng.system())
    public = PublicKey.from_bytes(key.public_key.to_bytes())
    assert public == key.public_key
    assert public.bits == 2048
    assert key.decrypt_signed(public.multiply(public.encrypt(-(2**1000), rng=RNG), 3)) == -3 * 2**1000


@pytest.mark.parametrize("bits", [0, 256, 500, 1025])
def test_weak_or_odd_keys_are_not_made(bits: int) -> None:
    with pytest.raises(SettingError, match=f"bits = {bits} for a Paillier key"):
        PrivateKey.generate(bits, rng=RNG)


def test_weak_or_broken_keys_are_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    written = PUBLIC.to_bytes()
    prime = int(paillier.gmpy2().next_prime(1 << 511)).to_bytes(64, "big")
    square = ((1 << 256) - 189) ** 2
    for n in (b"\xff" * 63 + b"\xfe", prime, square.to_bytes(64, "big")):
        with pytest.raises(WireError, match="not the product of two odd primes"):
            PublicKey.from_bytes(n + written[64:])
    with pytest.raises(WireError, match="randomisers are all 1"):
        PublicKey.from_bytes(written[:64] + (1).to_bytes(128, "big"))
    with pytest.raises(WireError, match="no ciphertext under this key"):
        PublicKey.from_bytes(written[:64] + b"\xff" * 128)
    with pytest.raises(WireError, match="a Paillier key of"):
        PublicKey.from_bytes(written[:-1])
    monkeypatch.setattr(paillier, "LEAST_BITS", 2048)
    with pytest.raises(WireError, match="a Paillier key of 512 bits was sent; 2048 is the least"):
        PublicKey.from_bytes(written)


def test_ciphertexts_travel_and_what_is_none_is_refused() -> None:
    sent = [PUBLIC.encrypt(i, rng=RNG) for i in range(3)]
    message = PUBLIC.write(sent)
    assert PUBLIC.read(message, 3) == sent
    width = PUBLIC.ciphertext_bytes
    for bad in (0, PUBLIC.n**2, PUBLIC.n**2 + 1, int(KEY._phe.p), int(KEY._phe.q) * 17):
        with pytest.raises(WireError, match="no ciphertext under this key"):
            PUBLIC.read(message[: 2 * width] + bad.to_bytes(width, "big"), 3)
    for count, sized in ((2, message), (4, message), (3, message[:-1])):
        with pytest.raises(WireError, match=f"{count} ciphertexts of {width} bytes were announced"):
            PUBLIC.read(sized, count)
    with pytest.raises(WireError, match="no ciphertext under this key"):
        KEY.decrypt(0)


def test_a_private_key_stays_where_it_is() -> None:
    assert str(KEY._phe.p) not in repr(KEY)
    with pytest.raises(TypeError, match="stays where it was made"):
        pickle.dumps(KEY)


def test_uniform_draws_of_any_size() -> None:
    rng = Rng.seeded(3)
    counts = np.bincount([uniform_below(7, rng=rng) for _ in range(7000)], minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-4
    large = [uniform_below(3 << 300, rng=rng) / (3 << 300) for _ in range(2000)]
    assert stats.kstest(large, "uniform").pvalue > 1e-4
    assert uniform_below(1, rng=rng) == 0
    with pytest.raises(SettingError, match="bound = 0 must be at least 1"):
        uniform_below(0, rng=rng)


def test_without_the_extra_tacit_works_and_says_what_is_missing() -> None:
    program = """
import sys
sys.modules["gmpy2"] = None
sys.modules["phe"] = None
import tacit
from tacit.secure.paillier.key import PrivateKey
try:
    PrivateKey.generate(rng=tacit.Rng.system())
except tacit.errors.SettingError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'tacit[secure]'" in run.stdout


# --- packing ---------------------------------------------------------------------------------------------------------


@given(st.data())
@settings(deadline=None)
def test_packed_numbers_come_back_whatever_their_signs(data: st.DataObject) -> None:
    bound = data.draw(st.integers(1, 2**200))
    values = data.draw(st.lists(st.integers(-bound, bound), min_size=1, max_size=40))
    packing = Packing.for_bound(PUBLIC, bound)
    packed = packing.pack(values)
    assert len(packed) == packing.n_blocks(len(values))
    assert all(2 * abs(plaintext) < PUBLIC.n for plaintext in packed)
    assert packing.unpack(packed, len(values)) == values


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_numbers_do_not_reach_their_neighbours(sign: int) -> None:
    packing = Packing.for_bound(PUBLIC, 2**60 - 1)
    full = [sign * packing.largest] * (2 * packing.n_slots)
    vector = EncryptedVector.encrypt(full, PUBLIC, packing, bound=packing.largest, rng=RNG)
    assert vector.decrypt(KEY) == full
    mixed = [(-1) ** i * packing.largest for i in range(2 * packing.n_slots)]
    assert EncryptedVector.encrypt(mixed, PUBLIC, packing, bound=packing.largest, rng=RNG).decrypt(KEY) == mixed


def test_vectors_add_up_and_multiply_within_their_bounds() -> None:
    packing = Packing.for_bound(PUBLIC, 1000)
    a = EncryptedVector.encrypt([1, -2, 300], PUBLIC, packing, bound=300, rng=RNG)
    b = EncryptedVector.encrypt([10, 20, -30], PUBLIC, packing, bound=30, rng=RNG)
    total = a.add(b.multiply(-3, bound=3))
    assert total.bound == 390
    assert total.decrypt(KEY) == [-29, -62, 390]
    fresh = total.rerandomise(rng=RNG)
    assert fresh.ciphertexts != total.ciphertexts
    assert fresh.decrypt(KEY) == total.decrypt(KEY)


def test_what_a_slot_cannot_hold_is_refused_before_it_is_computed() -> None:
    packing = Packing.for_bound(PUBLIC, 1000)  # slots hold up to 1023
    a = EncryptedVector.encrypt([1], PUBLIC, packing, bound=600, rng=RNG)
    with pytest.raises(SettingError, match="do not fit slots of 11"):
        a.add(a)
    with pytest.raises(SettingError, match="do not fit slots of 11"):
        a.multiply(1, bound=2)
    with pytest.raises(SettingError, match="larger in size than the declared bound"):
        a.multiply(2, bound=1)
    with pytest.raises(SettingError, match="larger in size than the declared bound"):
        EncryptedVector.encrypt([601], PUBLIC, packing, bound=600, rng=RNG)
    with pytest.raises(SettingError, match="too large for a slot of 11 bits"):
        packing.pack([1024])
    with pytest.raises(SettingError, match="do not fit a key of 512"):
        Packing.for_bound(PUBLIC, 1 << 512)
    with pytest.raises(SettingError, match="do not fit slots of 11"):
        a.mask_multiples(modulus_bits=4, rng=RNG)


def test_what_is_larger_than_declared_is_noticed_by_who_decrypts() -> None:
    packing = Packing.for_bound(PUBLIC, 1000)
    for plaintext in (601, 1 << 11, -(1 << 490)):
        liar = EncryptedVector(
            key=PUBLIC, packing=packing, size=1, bound=600, ciphertexts=(PUBLIC.encrypt(plaintext, rng=RNG),)
        )
        with pytest.raises(CenterError, match="larger than was declared"):
            liar.decrypt(KEY)
    foreign = PrivateKey.generate(512, rng=RNG)
    with pytest.raises(CenterError, match="not under this key"):
        liar.decrypt(foreign)
    with pytest.raises(CenterError, match="50 numbers lie in 2 plaintexts; there are 1"):
        packing.unpack([0], 50)


def test_vectors_travel_and_do_not_mix() -> None:
    packing = Packing.for_bound(PUBLIC, 1000)
    vector = EncryptedVector.encrypt(list(range(60)), PUBLIC, packing, bound=60, rng=RNG)
    read = EncryptedVector.from_bytes(vector.to_bytes(), PUBLIC, packing, size=60, bound=60)
    assert read == vector
    with pytest.raises(WireError, match="ciphertexts of 128 bytes were announced"):
        EncryptedVector.from_bytes(vector.to_bytes(), PUBLIC, packing, size=2, bound=60)
    other = EncryptedVector.encrypt([1], PUBLIC, packing, bound=60, rng=RNG)
    with pytest.raises(WireError, match="differ in key, packing or size"):
        vector.add(other)
    with pytest.raises(WireError, match="60 numbers lie in 2 ciphertexts"):
        EncryptedVector(key=PUBLIC, packing=packing, size=60, bound=60, ciphertexts=other.ciphertexts)


def test_a_mask_hides_all_but_the_remainder() -> None:
    """What is decrypted is uniform above the modulus, for the least and for the greatest multiple alike."""
    bound = 5 << 20
    packing = Packing.for_bound(PUBLIC, 1 << 80)
    quotients: dict[int, list[int]] = {}
    for value in (-bound + 3, 7, bound - 9):
        vector = EncryptedVector.encrypt([value] * 600, PUBLIC, packing, bound=bound, rng=RNG)
        opened = vector.mask_multiples(modulus_bits=20, rng=RNG).decrypt(KEY)
        assert all(x % (1 << 20) == value % (1 << 20) for x in opened)
        quotients[value] = [x >> 20 for x in opened]
    span = (2 * ((bound >> 20) + 1) + 1) << MASK_BITS
    for found in quotients.values():
        assert stats.kstest(np.array(found, dtype=float) / span, "uniform").pvalue > 1e-4


# --- matrix times vector ---------------------------------------------------------------------------------------------


def test_a_matrix_times_a_vector_is_a_program_of_the_center() -> None:
    """Three nodes' shares, two parties, signed factors of 63 bits: the sum is right modulo 2^128."""
    d, n_parties = 5, 2
    public = PUBLIC
    packing = product_packing(public, n_columns=d, n_parties=n_parties)
    chance = np.random.default_rng(3)
    A = chance.integers(-(2**62), 2**62, size=(d, d)).tolist()
    first, second = ([[uniform_below(SHARE, rng=RNG) for _ in range(d)] for _ in range(d)] for _ in range(2))
    third = [[(A[i][j] - first[i][j] - second[i][j]) % SHARE for j in range(d)] for i in range(d)]
    parts = [EncryptedMatrix.encrypt(part, public, packing, bound=SHARE, rng=RNG) for part in (first, second, third)]
    matrix = parts[0].add(parts[1]).add(parts[2])
    sent = EncryptedMatrix.from_bytes(matrix.to_bytes(), public, packing, shape=(d, d), bound=3 * SHARE)
    assert sent == matrix
    vectors = [chance.integers(-(2**62), 2**62, size=d).tolist(), [2**63, -(2**63), 0, 1, -1]]
    products = [sent.times(x, bound=1 << 63, rng=RNG) for x in vectors]
    total = products[0].add(products[1]).mask_multiples(rng=RNG).decrypt(KEY)
    expected = [sum(a * (x + y) for a, x, y in zip(row, *vectors, strict=True)) % SHARE for row in A]
    assert [number % SHARE for number in total] == expected


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_a_product_is_what_powers_one_by_one_give(data: st.DataObject) -> None:
    n_rows, n_columns = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 4))
    entries = st.lists(st.integers(-1000, 1000), min_size=n_columns, max_size=n_columns)
    rows = data.draw(st.lists(entries, min_size=n_rows, max_size=n_rows))
    x = data.draw(st.lists(st.integers(-(2**40), 2**40), min_size=n_columns, max_size=n_columns))
    packing = Packing.for_bound(PUBLIC, 4 * 1000 << 40)
    matrix = EncryptedMatrix.encrypt(rows, PUBLIC, packing, bound=1000, rng=RNG)
    product = matrix.times(x, bound=1 << 40, rng=RNG)
    assert product.decrypt(KEY) == [sum(a * b for a, b in zip(row, x, strict=True)) for row in rows]
    assert product.bound == n_columns * 1000 << 40


def test_a_product_is_fresh() -> None:
    """Else whoever knows the matrix's ciphertexts could try vectors out."""
    packing = Packing.for_bound(PUBLIC, 10_000)
    matrix = EncryptedMatrix.encrypt([[1, 2], [3, 4]], PUBLIC, packing, bound=4, rng=RNG)
    one, two = (matrix.times([1, 0], bound=9, rng=RNG) for _ in range(2))
    assert one.ciphertexts != two.ciphertexts
    assert one.ciphertexts != matrix.columns[0].ciphertexts
    assert one.decrypt(KEY) == two.decrypt(KEY) == [1, 3]


def test_tables_are_narrow_where_the_matrix_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.secure.paillier.vector._TABLE_BYTES", 1)
    packing = Packing.for_bound(PUBLIC, 1 << 200)
    matrix = EncryptedMatrix.encrypt([[5, -7]] * 4, PUBLIC, packing, bound=7, rng=RNG)
    assert matrix._window == 1
    assert matrix.times([2**60 + 1, -3], bound=1 << 61, rng=RNG).decrypt(KEY) == [5 * (2**60 + 1) + 21] * 4


def test_matrices_that_do_not_fit_are_named() -> None:
    packing = Packing.for_bound(PUBLIC, 10_000)
    matrix = EncryptedMatrix.encrypt([[1, 2], [3, 4]], PUBLIC, packing, bound=4, rng=RNG)
    with pytest.raises(SettingError, match="a vector of 3 numbers does not fit a matrix of 2 columns"):
        matrix.times([1, 2, 3], bound=9, rng=RNG)
    with pytest.raises(SettingError, match="larger in size than the declared bound"):
        matrix.times([1, 10], bound=9, rng=RNG)
    with pytest.raises(SettingError, match="do not fit slots"):
        matrix.times([1, 1], bound=1 << 20, rng=RNG)
    with pytest.raises(WireError, match=r"shapes \(2, 2\) and \(1, 2\) cannot be added"):
        matrix.add(EncryptedMatrix.encrypt([[1, 2]], PUBLIC, packing, bound=4, rng=RNG))
    with pytest.raises(WireError, match=r"shape \(2, 3\) was announced"):
        EncryptedMatrix.from_bytes(matrix.to_bytes(), PUBLIC, packing, shape=(2, 3), bound=4)
    with pytest.raises(WireError, match="differ in key, packing, size or bound, or there are none"):
        EncryptedMatrix(())
