"""The curator's protocol: the sum is right, and every participant's view can be made up without the others' secrets."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

pytest.importorskip("phe")
pytest.importorskip("gmpy2")

from tacit import wire
from tacit.errors import SettingError, WireError
from tacit.rand import Rng
from tacit.secure.curator.comparison import SecureComparison, cut, read_pairs
from tacit.secure.curator.curator import Curator
from tacit.secure.curator.letter import Carrier, Correspondent, OutgoingLetters
from tacit.secure.curator.member import CuratorMember, FirstMember
from tacit.secure.curator.role import Role, open_shares, read_vector
from tacit.secure.curator.terms import CURATOR, Contribution, CuratorTerms
from tacit.secure.paillier import key as paillier
from tacit.secure.paillier.key import PrivateKey
from tacit.wire import Value

Seen = list[tuple[str, str, str, dict[str, Value]]]  # reader, sender, subject, body


RUNS = {"next": 0}  # each run of a test has its own seed, the same ones every time the test is run


@pytest.fixture(autouse=True)
def small_keys_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "LEAST_BITS", 512)
    monkeypatch.setitem(RUNS, "next", 0)


@pytest.fixture
def keys_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of runs share two pairs of keys, which are nothing that these tests look at."""
    first, second = (PrivateKey.generate(512, rng=Rng.seeded(seed)) for seed in (101, 102))
    turns = itertools.cycle([first, second])
    monkeypatch.setattr(PrivateKey, "generate", lambda bits, *, rng: next(turns))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Every letter that anybody opens."""
    letters: Seen = []
    really_open = Correspondent.open

    def spy(self: Correspondent, sender: str, subject: str, letter: bytes) -> Mapping[str, Value]:
        body = really_open(self, sender, subject, letter)
        letters.append((self.name, sender, subject, body))
        return body

    monkeypatch.setattr(Correspondent, "open", spy)
    return letters


def make_terms(n_parties: int = 3, **changes: Any) -> CuratorTerms:
    start = CuratorTerms(
        session="run",
        n_parties=n_parties,
        dimension=4,
        size_bits=10,
        share_bits=96,
        factor_bound=1 << 20,
        noise_bound=1 << 30,
        key_bits=512,
    )
    return replace(start, **changes)


def contribution(size: int, j: int = 0, dimension: int = 4, **changes: Any) -> Contribution:
    start = Contribution(
        size=size,
        factor=(1 << 20) // size,
        noise=[(j + 1) * (-1) ** i * (1000 + i) for i in range(dimension)],
        addend=[(j - 2) * 10**20 + i for i in range(dimension)],
    )
    return replace(start, **changes)


def make_roles(terms: CuratorTerms, brought: list[Contribution], rng: Rng | None = None) -> dict[str, Role]:
    RUNS["next"] += 1
    rng = Rng.seeded(RUNS["next"]) if rng is None else rng
    roles: dict[str, Role] = {}
    for j, (name, own) in enumerate(zip(terms.parties, brought, strict=True)):
        roles[name] = (CuratorMember if j else FirstMember)(name, terms, own, rng=rng.child(name))
    return roles | {CURATOR: Curator(terms, rng=rng.child(CURATOR))}


def directory_of(roles: dict[str, Role]) -> bytes:
    return wire.encode({"directory": {name: role.hello() for name, role in roles.items()}})


def play(roles: dict[str, Role], terms: CuratorTerms, tamper: Callable[[str, bytes], bytes] | None = None) -> list[int]:
    return open_shares(publish(roles, terms, tamper), terms)


def publish(
    roles: dict[str, Role], terms: CuratorTerms, tamper: Callable[[str, bytes], bytes] | None = None
) -> dict[str, bytes]:
    """Carry messages until everybody has published; `tamper` may alter what one receives."""
    carrier = Carrier(terms.participants)
    deliveries = dict.fromkeys(roles, directory_of(roles))
    while deliveries:
        for name, message in deliveries.items():
            carrier.collect(name, roles[name].receive(tamper(name, message) if tamper else message))
        deliveries = carrier.due()
    carrier.check_finished()
    return carrier.published


def expected(terms: CuratorTerms, brought: list[Contribution]) -> list[int]:
    smallest = min(brought, key=lambda own: own.size)
    total = [sum(column) for column in zip(*(own.addend for own in brought), strict=True)]
    if terms.selects == "noise":
        return [a + z for a, z in zip(total, smallest.noise, strict=True)]
    noise = [sum(column) for column in zip(*(own.noise for own in brought), strict=True)]
    return [a + smallest.factor * z for a, z in zip(total, noise, strict=True)]


# --- the result ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selects", ["factor", "noise"])
@pytest.mark.parametrize("n_parties", [2, 3, 5, 10])
def test_the_sum_holds_the_noise_that_the_smallest_party_asks_for(n_parties: int, selects: Any) -> None:
    terms = make_terms(n_parties, selects=selects)
    for seed in range(3):
        sizes = np.random.default_rng(seed).permutation(900)[:n_parties] + 1
        brought = [contribution(int(size), j) for j, size in enumerate(sizes)]
        assert play(make_roles(terms, brought), terms) == expected(terms, brought)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_whoever_is_the_smallest_is_found(place: int) -> None:
    terms = make_terms()
    brought = [contribution(3 if j == place else 4, j) for j in range(3)]
    for _ in range(6):
        assert play(make_roles(terms, brought), terms) == expected(terms, brought)


def test_sizes_at_the_ends_of_their_range() -> None:
    terms = make_terms(n_parties=2)
    for sizes in ((1, 1023), (1023, 1), (1023, 1022), (512, 511), (1, 2)):
        brought = [contribution(size, j) for j, size in enumerate(sizes)]
        assert play(make_roles(terms, brought), terms) == expected(terms, brought)


def test_the_largest_numbers_that_the_terms_allow() -> None:
    terms = make_terms(n_parties=2)
    ends = [terms.noise_bound, -terms.noise_bound, 0, -1]
    brought = [contribution(1, j, factor=terms.factor_bound, noise=ends) for j in range(2)]
    assert play(make_roles(terms, brought), terms) == expected(terms, brought)


def test_keys_of_full_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "LEAST_BITS", 2048)
    terms = make_terms(key_bits=2048)
    brought = [contribution(size, j) for j, size in enumerate((50, 20, 30))]
    assert play(make_roles(terms, brought), terms) == expected(terms, brought)


def test_a_seed_gives_the_same_messages() -> None:
    terms = make_terms()
    brought = [contribution(size, j) for j, size in enumerate((50, 20, 30))]
    one, two = ([], [])
    for log in (one, two):
        play(make_roles(terms, brought, Rng.seeded(4)), terms, tamper=lambda name, m, log=log: log.append(m) or m)
    assert one == two
    assert len(one) > 20


# --- comparisons -----------------------------------------------------------------------------------------------------

HOLDER = Rng.seeded(2)


def holder_key() -> PrivateKey:
    least, paillier.LEAST_BITS = paillier.LEAST_BITS, 512
    try:
        return PrivateKey.generate(512, rng=HOLDER)
    finally:
        paillier.LEAST_BITS = least


KEY = holder_key()


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 511), st.integers(0, 1))
@settings(max_examples=80, deadline=None)
def test_a_comparison_is_right_for_every_pair_and_every_split(first: int, second: int, x: int, flip: int) -> None:
    comparison = SecureComparison(8, KEY.public_key)
    y = (first - second - x) % 512
    test = comparison.test(comparison.request(KEY, x, rng=HOLDER), y, flip, rng=HOLDER)
    outcome = comparison.outcome(KEY, test, x)
    assert comparison.is_smaller(outcome, y, flip) == (first < second)


def test_what_the_holder_of_the_key_finds_is_a_fair_coin_and_noise() -> None:
    """Whatever the difference: zero or not is a coin, and what is not zero is uniform modulo the prime."""
    comparison = SecureComparison(6, KEY.public_key)
    rng = Rng.seeded(8)
    zeros: Counter[tuple[int, bool]] = Counter()
    remainders: dict[int, list[int]] = {-3: [], 3: []}
    masks: list[int] = []
    for difference in (-3, 3):
        for _ in range(150):
            x = int(rng.below(128, 1)[0])
            y = (difference - x) % 128
            flip = int(rng.below(2, 1)[0])
            message = comparison.test(comparison.request(KEY, x, rng=rng), y, flip, rng=rng)
            numbers = comparison._read(message).decrypt(KEY)
            found = [number % comparison._prime for number in numbers]
            assert found.count(0) <= 1
            zeros[difference, 0 in found] += 1
            remainders[difference] += [r for r in found if r]
            masks += [number // comparison._prime for number in numbers]
    table = [[zeros[difference, found] for found in (False, True)] for difference in (-3, 3)]
    assert stats.chi2_contingency(table).pvalue > 1e-4
    assert stats.binomtest(zeros[-3, True], 150).pvalue > 1e-4
    for found in remainders.values():
        counts = np.bincount(found, minlength=comparison._prime)[1:]
        assert stats.chisquare(counts).pvalue > 1e-4
    assert stats.kstest(np.array(masks, dtype=float) / comparison._mask_span, "uniform").pvalue > 1e-4


def test_the_place_of_a_zero_tells_nothing() -> None:
    """It would tell in which bit two numbers differ first."""
    comparison = SecureComparison(6, KEY.public_key)
    rng = Rng.seeded(10)
    places: Counter[int] = Counter()
    request = comparison.request(KEY, 40, rng=rng)
    while places.total() < 200:
        numbers = comparison._read(comparison.test(request, 90, 0, rng=rng)).decrypt(KEY)
        (place,) = (i for i, number in enumerate(numbers) if number % comparison._prime == 0)
        places[place] += 1
    assert stats.chisquare([places[i] for i in range(7)]).pvalue > 1e-4


def test_the_carry_is_told_to_nobody() -> None:
    """The outcome on the wire does not depend on the difference's size: only its sign comes out, and by coins."""
    comparison = SecureComparison(6, KEY.public_key)
    rng = Rng.seeded(9)
    told: dict[int, list[int]] = {}
    for difference in (1, 30, 60):
        told[difference] = []
        for _ in range(120):
            x = int(rng.below(128, 1)[0])
            flip = int(rng.below(2, 1)[0])
            y = (difference - x) % 128
            test = comparison.test(comparison.request(KEY, x, rng=rng), y, flip, rng=rng)
            told[difference].append(comparison.outcome(KEY, test, x))
    table = [[bits.count(0), bits.count(1)] for bits in told.values()]
    assert stats.chi2_contingency(table).pvalue > 1e-4


@pytest.mark.parametrize("pairs", [None, [], [1], [0, 3], [0, 0], [0, -1], [0, "1"], [True, 1]])
def test_pairs_that_are_none_are_refused(pairs: Any) -> None:
    with pytest.raises(WireError, match="not a list of pairs of 3 places"):
        read_pairs(pairs, 3)


def test_parts_of_another_length_are_refused() -> None:
    assert cut(b"abcd", 2, 2) == [b"ab", b"cd"]
    with pytest.raises(WireError, match="2 parts of 3 bytes are due; the message has 4"):
        cut(b"abcd", 3, 2)


# --- what each participant sees --------------------------------------------------------------------------------------


def views(seen: Seen, reader: str, subject: str, field: str) -> list[Any]:
    return [body[field] for name, _, about, body in seen if (name, about) == (reader, subject)]


SIZES = [(5, 900, 901), (300, 300, 300)]


def bytes_are_uniform(messages: list[bytes]) -> bool:
    counts = np.bincount(np.frombuffer(b"".join(messages), dtype=np.uint8) // 16, minlength=16)
    return bool(stats.chisquare(counts).pvalue > 1e-4)


@pytest.mark.usefixtures("keys_are_kept")
def test_the_first_party_sees_uniform_shares_of_sizes(seen: Seen) -> None:
    terms = make_terms(size_bits=13)  # with 44 bits for ties, a share modulo 2^58
    counts = []
    for sizes in SIZES:
        seen.clear()
        for _ in range(40):
            play(make_roles(terms, [contribution(n, j) for j, n in enumerate(sizes)]), terms)
        shares = [int.from_bytes(a, "big") for a in views(seen, terms.first, "size", "a")]
        modulus = 1 << terms.order_bits + 1
        assert stats.kstest(np.array(shares, dtype=float) / modulus, "uniform").pvalue > 1e-4
        counts.append(np.bincount([a * 4 // modulus for a in shares], minlength=4))
    assert stats.chi2_contingency(counts).pvalue > 1e-4


def curators_shares(seen: Seen, curator: Role) -> list[int]:
    key = curator._paillier
    assert key is not None
    (message,) = views(seen, CURATOR, "permuted", "b")
    return [key.decrypt(c) for c in key.public_key.read(message, curator.terms.n_parties)]


@pytest.mark.usefixtures("keys_are_kept")
def test_the_curator_sees_uniform_shares_of_sizes(seen: Seen) -> None:
    terms = make_terms()
    modulus = 1 << terms.order_bits + 1
    for sizes in SIZES:
        shares = []
        for _ in range(40):
            seen.clear()
            roles = make_roles(terms, [contribution(n, j) for j, n in enumerate(sizes)])
            play(roles, terms)
            shares += curators_shares(seen, roles[CURATOR])
        assert stats.kstest(np.array(shares, dtype=float) / modulus, "uniform").pvalue > 1e-4


@pytest.mark.usefixtures("keys_are_kept")
def test_blinded_shares_are_uniform_to_the_first_party(seen: Seen) -> None:
    """It knows the shares before they are blinded; after it, they cannot be told apart."""
    terms = make_terms()
    modulus = 1 << terms.order_bits + 1
    blinded: list[int] = []
    offsets: list[float] = []
    for _ in range(60):
        seen.clear()
        roles = make_roles(terms, [contribution(n, j) for j, n in enumerate(SIZES[0])])
        play(roles, terms)
        key = roles[terms.first]._paillier
        assert key is not None
        (message,) = views(seen, terms.first, "blinded", "shares")
        whole = [key.decrypt(c) for c in key.public_key.read(message, 3)]
        blinded += whole
        known = int.from_bytes(views(seen, terms.first, "size", "a")[0], "big")
        offsets.append((whole[0] - known) % modulus / modulus)
    span = 2.0 ** (terms.order_bits + 65)
    assert stats.kstest(np.array(blinded, dtype=float) / span, "uniform").pvalue > 1e-4
    assert stats.kstest(offsets, "uniform").pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.usefixtures("keys_are_kept")
@pytest.mark.parametrize("n_parties", [2, 3, 5])
def test_the_order_that_the_curator_finds_is_random_whatever_the_sizes(
    n_parties: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Smallest first, smallest last, all equal: the outcomes of the tournament have one distribution."""
    terms = make_terms(n_parties, dimension=1)
    found: list[tuple[bool, ...]] = []
    outcomes: list[bool] = []
    really = SecureComparison.is_smaller

    def spy(self: SecureComparison, outcome: int, y: int, flip: int) -> bool:
        outcomes.append(really(self, outcome, y, flip))
        return outcomes[-1]

    monkeypatch.setattr(SecureComparison, "is_smaller", spy)
    counts = []
    for sizes in (range(1, n_parties + 1), range(n_parties, 0, -1), [7] * n_parties):
        found = []
        for _ in range(40 if n_parties < 5 else 24):
            outcomes.clear()
            play(make_roles(terms, [contribution(n, j, 1) for j, n in enumerate(sizes)]), terms)
            found.append(tuple(outcomes))
        counts.append([found.count(each) for each in itertools.product([False, True], repeat=n_parties - 1)])
    table = np.array(counts)[:, np.sum(counts, axis=0) > 0]
    assert stats.chi2_contingency(table).pvalue > 1e-4


@pytest.mark.usefixtures("keys_are_kept")
@pytest.mark.parametrize("smallest", [0, 2])
def test_the_place_that_the_curator_marks_says_nothing_about_who_is_the_smallest(seen: Seen, smallest: int) -> None:
    terms = make_terms(dimension=1)
    marked: Counter[int] = Counter()
    for _ in range(90):
        seen.clear()
        roles = make_roles(terms, [contribution(3 if j == smallest else 900, j, 1) for j in range(3)])
        play(roles, terms)
        key = roles[CURATOR]._paillier
        assert key is not None
        (message,) = views(seen, terms.first, "indicator", "indicator")
        indicator = [key.decrypt(c) for c in key.public_key.read(message, 3)]
        assert sorted(indicator) == [0, 0, 1]
        marked[indicator.index(1)] += 1
    assert stats.chisquare([marked[place] for place in range(3)]).pvalue > 1e-4


@pytest.mark.usefixtures("keys_are_kept")
def test_what_the_curator_decrypts_is_uniform(seen: Seen) -> None:
    """Even one party's part: its own mask hides its noise."""
    terms = make_terms(dimension=8)
    parts: list[int] = []
    for _ in range(25):
        seen.clear()
        brought = [contribution(n, j, 8) for j, n in enumerate(SIZES[0])]
        roles = make_roles(terms, brought)
        play(roles, terms)
        key = roles[CURATOR]._paillier
        assert key is not None
        packing = terms.noise_packing(key.public_key)
        for message in views(seen, CURATOR, "share", "noise"):
            plaintexts = [key.decrypt_signed(c) for c in key.public_key.read(message, packing.n_blocks(8))]
            parts += packing.unpack(plaintexts, 8)
    low = np.array([part % (1 << terms.share_bits) for part in parts], dtype=float) / 2.0**terms.share_bits
    assert stats.kstest(low, "uniform").pvalue > 1e-4
    assert stats.kstest(np.array(parts, dtype=float) / float(terms.mask_bound), "uniform").pvalue > 1e-4


@pytest.mark.usefixtures("keys_are_kept")
def test_shares_that_travel_and_shares_that_are_published_are_uniform(seen: Seen) -> None:
    terms = make_terms(dimension=16)
    published: list[bytes] = []
    for _ in range(12):
        roles = make_roles(terms, [contribution(n, j, 16) for j, n in enumerate(SIZES[0])])
        published += list(publish(roles, terms).values())[:-1]
    for reader in terms.participants:
        assert bytes_are_uniform(views(seen, reader, "share", "share"))
    assert bytes_are_uniform(published)


def test_published_shares_are_fresh() -> None:
    """Nobody's published share is what it held before: addend less mask, or noise plus masks."""
    terms = make_terms()
    roles = make_roles(terms, [contribution(n, j) for j, n in enumerate(SIZES[0])])
    held: dict[str, list[int]] = {}
    really = Role._split

    def spy(self: Role, vector: list[int]) -> dict[str, list[int]]:
        held[self.name] = [x % (1 << terms.share_bits) for x in vector]
        return really(self, vector)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Role, "_split", spy)
        published = publish(roles, terms)
    assert set(held) == set(terms.participants)
    for name, message in published.items():
        width = terms.share_bits // 8
        assert not {message[i : i + width] for i in range(0, len(message), width)} & {
            x.to_bytes(width, "big") for x in held[name]
        }


@pytest.mark.usefixtures("keys_are_kept")
def test_the_curator_and_the_first_party_together_find_no_more_than_the_others_sum(seen: Seen) -> None:
    """All that the two hold and all that is published gives the honest parties' sum with the honest parties' noise.

    They can decrypt each party's masked noise, and have two of five shares of what each party holds: of one party alone
    that leaves a uniform number.
    """
    terms = make_terms(n_parties=4)
    modulus = 1 << terms.share_bits
    brought = [contribution(n, j) for j, n in enumerate((9, 5, 7, 8))]
    pooled, honest = (CURATOR, "party0"), ("party1", "party2", "party3")
    alone = []
    for _ in range(20):
        seen.clear()
        roles = make_roles(terms, brought)
        published = publish(roles, terms)
        key = roles[CURATOR]._paillier
        assert key is not None
        packing = terms.noise_packing(key.public_key)
        shares = {(w, r): read_vector(body["share"], terms) for r, w, about, body in seen if about == "share"}  # type: ignore[arg-type]
        noise = {}
        for reader, writer, about, body in seen:
            if (reader, about) == (CURATOR, "share"):
                blocks = key.public_key.read(body["noise"], packing.n_blocks(4))  # type: ignore[arg-type]
                noise[writer] = packing.unpack([key.decrypt_signed(c) for c in blocks], 4)
        for i in range(4):
            total = sum(read_vector(published[name], terms)[i] + noise[name][i] for name in honest)
            total += sum(shares[h, p][i] - shares[p, h][i] for h in honest for p in pooled)
            theirs = sum(own.addend[i] + brought[1].factor * own.noise[i] for own in brought[1:])
            assert (total - theirs) % modulus == 0
            alone.append(sum(shares["party2", p][i] for p in pooled) + noise["party2"][i])
    known = np.array([x % modulus for x in alone], dtype=float) / float(modulus)
    assert stats.kstest(known, "uniform").pvalue > 1e-4


def test_nothing_travels_in_the_clear() -> None:
    """Neither sizes nor factors nor addends appear in any message as it is carried."""
    terms = make_terms()
    carried: list[bytes] = []
    marks = [0xDEADBEEF00 + i for i in range(4)]
    brought = [contribution(n, j, addend=marks, noise=[0] * 4) for j, n in enumerate(SIZES[0])]
    play(make_roles(terms, brought), terms, tamper=lambda name, m: carried.append(m) or m)  # type: ignore[func-returns-value]
    everything = b"".join(carried)
    for mark in marks:
        assert mark.to_bytes(5, "big") not in everything
        assert mark.to_bytes(5, "little") not in everything


# --- wrong messages --------------------------------------------------------------------------------------------------


def started(**changes: Any) -> tuple[CuratorTerms, dict[str, Role]]:
    terms = make_terms(**changes)
    return terms, make_roles(terms, [contribution(n, j) for j, n in enumerate(range(5, 5 + terms.n_parties))])


@pytest.mark.parametrize("message", [b"", b"garbage", wire.encode({}), wire.encode({"letters": {}})])
def test_a_run_begins_with_the_directory(message: bytes) -> None:
    _, roles = started()
    with pytest.raises(WireError, match=r"Directory|value|message"):
        roles["party1"].receive(message)
    with pytest.raises(WireError, match="is over for party1"):
        roles["party1"].receive(directory_of(roles))


def test_a_directory_that_leaves_somebody_out_or_swaps_keys_is_refused() -> None:
    _, roles = started()
    entries = {name: role.hello() for name, role in roles.items()}
    missing = {name: entry for name, entry in entries.items() if name != "party2"}
    with pytest.raises(WireError, match="is the directory of its participants"):
        roles["party1"].receive(wire.encode({"directory": missing}))
    _, roles = started()
    with pytest.raises(WireError, match="other keys for party1 than its own"):
        roles["party1"].receive(wire.encode({"directory": entries}))
    entries = {name: role.hello() for name, role in roles.items()}
    with pytest.raises(WireError, match=r"has no key of its own|same key"):
        roles["party2"].receive(wire.encode({"directory": entries | {"party1": entries["party2"]}}))
    _, roles = started()
    entries = {name: role.hello() for name, role in roles.items()}
    with pytest.raises(WireError, match="a Paillier key of"):
        roles["party2"].receive(wire.encode({"directory": entries | {CURATOR: entries["party1"]}}))
    _, roles = started()
    entries = {name: role.hello() for name, role in roles.items()}
    with pytest.raises(WireError, match="has no keys for 'party1'"):
        roles["party2"].receive(wire.encode({"directory": entries | {"party1": wire.encode(None)}}))


def test_keys_of_another_length_than_agreed_are_refused() -> None:
    _, roles = started()
    _, longer = started(key_bits=768)
    entries: dict[str, Value] = {name: role.hello() for name, role in roles.items()}
    with pytest.raises(WireError, match="of 768 bits was sent where 512 were agreed"):
        roles["party1"].receive(wire.encode({"directory": entries | {CURATOR: longer[CURATOR].hello()}}))


def altered(at: int) -> Callable[[str, bytes], bytes]:
    """Flip one bit of a letter in the `at`-th delivery of letters."""
    count = itertools.count()

    def tamper(name: str, message: bytes) -> bytes:
        match wire.decode(message):
            case {"letters": dict(letters)} if letters and next(count) == at:
                sender = sorted(letters)[0]
                box = bytearray(letters[sender])
                box[len(box) // 2] ^= 4
                return wire.encode({"letters": letters | {sender: bytes(box)}})
        return message

    return tamper


@pytest.mark.parametrize("at", [0, 1, 3, 6, 9, 14])
def test_an_altered_letter_does_not_open(at: int) -> None:
    terms, roles = started()
    with pytest.raises(WireError, match="does not open: it is for another reader, or was altered"):
        play(roles, terms, altered(at))


def test_a_letter_cannot_be_given_to_another_reader_replayed_or_taken_into_another_run() -> None:
    rng = Rng.system()
    ann, bob, eve = (Correspondent("run", name, rng=rng) for name in ("ann", "bob", "eve"))
    desks = {desk.name: desk for desk in (ann, bob, eve)}
    for desk in desks.values():
        desk.meet({name: other.public_key for name, other in desks.items() if name != desk.name})
    letter = ann.seal("bob", "greeting", {"text": "hello"})
    with pytest.raises(WireError, match="does not open"):
        eve.open("ann", "greeting", letter)
    with pytest.raises(WireError, match="does not open"):
        bob.open("eve", "greeting", letter)
    with pytest.raises(WireError, match="does not open"):
        bob.open("stranger", "greeting", letter)
    with pytest.raises(WireError, match="writes about 'greeting' where 'farewell' is due"):
        bob.open("ann", "farewell", letter)
    assert bob.open("ann", "greeting", letter) == {"text": "hello"}
    with pytest.raises(WireError, match="another run, reader or turn"):
        bob.open("ann", "greeting", letter)
    elsewhere = Correspondent("another run", "ann", rng=rng)
    elsewhere._key = ann._key
    elsewhere.meet({"bob": bob.public_key})
    with pytest.raises(WireError, match="another run, reader or turn"):
        bob.open("ann", "greeting", elsewhere.seal("bob", "greeting", {}))


def forged(reader: str, subject: str, change: Callable[[dict[str, Value]], dict[str, Value]]) -> Any:
    """Let a participant send something else than it should, properly sealed."""
    really = Correspondent.seal

    def seal(self: Correspondent, recipient: str, about: str, body: dict[str, Value]) -> bytes:
        if (recipient, about) == (reader, subject):
            body = change(dict(body))
        return really(self, recipient, about, body)

    patch = pytest.MonkeyPatch()
    patch.setattr(Correspondent, "seal", seal)
    return patch


WRONG = [
    ("party0", "size", lambda b: b | {"a": 3}, "lacks its 'a'"),
    ("party0", "size", lambda b: b | {"b": b"\0" * 128}, "no ciphertext under this key"),
    (CURATOR, "permuted", lambda b: b | {"a": b["a"][:-1]}, "3 ciphertexts of 128 bytes were announced"),
    (CURATOR, "permuted", lambda b: b | {"b": b["b"] + b"\0"}, "3 ciphertexts of 128 bytes were announced"),
    ("party0", "blinded", lambda b: b | {"pairs": [0, 0]}, "not a list of pairs"),
    ("party0", "blinded", lambda b: b | {"shares": b""}, "3 ciphertexts of 128 bytes were announced"),
    (CURATOR, "requests", lambda b: b | {"requests": b["requests"][128:]}, "parts of .* bytes are due"),
    ("party0", "tests", lambda b: {}, "lacks its 'tests'"),
    (CURATOR, "outcomes", lambda b: {"outcomes": b"\2"}, "1 outcomes of 0 or 1 are due"),
    ("party0", "indicator", lambda b: {"indicator": b["indicator"][128:]}, "3 ciphertexts of 128 bytes"),
    ("party1", "selector", lambda b: {"selector": b["selector"] * 2}, "1 ciphertexts of 128 bytes"),
    ("party0", "factor", lambda b: {"part": b"\0" * 128}, "no ciphertext under this key"),
    (CURATOR, "share", lambda b: b | {"noise": b["noise"][128:]}, "ciphertexts of 128 bytes were announced"),
    (CURATOR, "share", lambda b: {"share": b["share"]}, "lacks its 'noise'"),
    ("party2", "share", lambda b: {"share": b["share"][1:]}, "a share of 47 bytes was sent where 4 numbers are due"),
]


@pytest.mark.parametrize(("reader", "subject", "change", "message"), WRONG)
def test_a_participant_who_sends_something_else_is_noticed(
    reader: str, subject: str, change: Callable[[Any], Any], message: str
) -> None:
    terms, roles = started()
    patch = forged(reader, subject, change)
    try:
        with pytest.raises(WireError, match=message):
            play(roles, terms)
    finally:
        patch.undo()


def test_a_delivery_brings_just_the_letters_that_are_due() -> None:
    _, roles = started()
    roles["party1"].receive(directory_of(roles))
    with pytest.raises(WireError, match="does not bring the letters that are due"):
        roles["party1"].receive(wire.encode({"letters": {"party2": b""}}))
    _, roles = started()
    roles["party1"].receive(directory_of(roles))
    with pytest.raises(WireError, match=r"Delivery\.letters is a whole number where bytes is due"):
        roles["party1"].receive(wire.encode({"letters": {"party0": 3}}))


def test_the_post_refuses_what_it_cannot_deliver_and_an_unfinished_end() -> None:
    carrier = Carrier(("a", "b"))
    with pytest.raises(WireError, match="writes to 'c', who is unknown"):
        carrier.collect("a", OutgoingLetters(letters={"c": b""}, awaits=("b",)).encode())
    carrier.collect("a", OutgoingLetters(letters={"b": b""}, awaits=("b",)).encode())
    with pytest.raises(WireError, match="has a letter of its waiting"):
        carrier.collect("a", OutgoingLetters(letters={"b": b""}, awaits=("b",)).encode())
    with pytest.raises(WireError, match="ended before a, b published"):
        carrier.check_finished()
    for garbage in (None, {}, {"letters": {"a": 1}, "awaits": [], "published": b""}):
        with pytest.raises(WireError, match="OutgoingLetters"):
            OutgoingLetters.decode(wire.encode(garbage))


def test_a_sum_needs_every_share() -> None:
    terms = make_terms(n_parties=2)
    with pytest.raises(WireError, match="the published share of every participant"):
        open_shares({"party0": b"", "party1": b""}, terms)


# --- terms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_parties": 1}, "n_parties = 1"),
        ({"dimension": 0}, "must be at least 1"),
        ({"share_bits": 48}, "share_bits = 48 do not hold the noise"),
        ({"share_bits": 97}, "share_bits = 97"),
        ({"selects": "all"}, "selects = 'all' is unknown"),
    ],
)
def test_terms_that_keep_nothing_secret_or_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make_terms(**changes)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size", 1024),
        ("factor", 0),
        ("factor", 1 << 21),
        ("noise", [1 << 31] * 4),
        ("noise", [1]),
        ("addend", [1 << 95] * 4),
    ],
)
def test_a_contribution_beyond_the_terms_is_named_but_not_shown(field: str, value: Any) -> None:
    terms = make_terms()
    with pytest.raises(SettingError, match=f"this party's {field} does not keep to the terms") as refusal:
        CuratorMember("party1", terms, replace(contribution(5), **{field: value}), rng=Rng.system())
    assert str(value) not in str(refusal.value)
    assert "99999" not in repr(contribution(99999))


def test_a_party_takes_its_own_place() -> None:
    terms = make_terms()
    for kind, name in (
        (CuratorMember, "party0"),
        (FirstMember, "party1"),
        (CuratorMember, "party3"),
        (CuratorMember, CURATOR),
    ):
        with pytest.raises(WireError, match="is not this kind of party in a run of 3"):
            kind(name, terms, contribution(5), rng=Rng.system())
