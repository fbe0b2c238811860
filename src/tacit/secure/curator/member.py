"""A party's part of the protocol, and what the first party does besides."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from tacit.errors import WireError
from tacit.rand import Rng
from tacit.secure.curator.comparison import SecureComparison, cut, read_pairs
from tacit.secure.curator.letter import Body, Pins
from tacit.secure.curator.role import Finish, Mail, Program, Role, Turn, take
from tacit.secure.curator.terms import CURATOR, Contribution, CuratorTerms
from tacit.secure.paillier.key import PrivateKey, PublicKey
from tacit.secure.paillier.vector import EncryptedVector
from tacit.wire import Value


class CuratorMember(Role):
    """A party that is not the first."""

    def __init__(
        self,
        name: str,
        terms: CuratorTerms,
        contribution: Contribution,
        *,
        rng: Rng,
        key: PrivateKey | None = None,
        pins: Pins | None = None,
    ) -> None:
        """Take part; the first party may bring a key that it has, for keys serve many runs."""
        contribution.check(terms)
        if name not in terms.parties or (name == terms.first) != isinstance(self, FirstMember):
            raise WireError(f"{name!r} is not this kind of party in a run of {terms.n_parties}")
        super().__init__(name, terms, rng=rng, key=key, pins=pins)
        self._own = contribution

    @property
    def _curators_key(self) -> PublicKey:
        return self._keys[CURATOR]

    def _program(self) -> Program:
        first = self.terms.first
        # Stage 1. Two shares of the size: one for the first party, one for the curator, who are to see it permuted.
        a, b = self._size_shares()
        mail = yield Turn(send={first: {"a": a, "b": b}}, subject="size", awaits=[first], about="selector")
        # Stage 2. An encrypted 1 if this party is the smallest, else 0.
        selector = self._one_ciphertext(mail[first], "selector")
        if self.terms.selects == "factor":
            part = self._times_factor(selector)
            mail = yield Turn(send={first: {"part": part}}, subject="factor", awaits=[first], about="selected")
            selector = self._one_ciphertext(mail[first], "selected")
        # Stage 3.
        return (yield from self._share(selector))

    def _size_shares(self) -> tuple[bytes, bytes]:
        """n_j 2^t + tie = a_j + b_j modulo 2^(l+1): a_j as it is, b_j under the curator's key."""
        t = self.terms
        n_bytes = (t.order_bits + 8) // 8
        modulus = 1 << t.order_bits + 1
        tie = int.from_bytes(self._rng.bytes((t.tie_bits + 7) // 8), "big") >> -t.tie_bits % 8
        a = int.from_bytes(self._rng.bytes(n_bytes), "big") % modulus  # a power of two: uniform
        b = ((self._own.size << t.tie_bits) + tie - a) % modulus
        return a.to_bytes(n_bytes, "big"), self._curators_key.write([self._curators_key.encrypt(b, rng=self._rng)])

    def _times_factor(self, selector: int) -> bytes:
        key = self._curators_key
        return key.write([key.rerandomise(key.multiply(selector, self._own.factor), rng=self._rng)])

    def _share(self, selected: int) -> Program:
        letters, own = self._share_letters(selected)
        others = [name for name in self.terms.participants if name != self.name]
        mail = yield Turn(send=letters, subject="share", awaits=others, about="share")
        return Finish(share=self._gather(own, mail))

    def _share_letters(self, selected: int) -> tuple[dict[str, Body], list[int]]:
        """A fresh share for everybody, the masked noise for the curator besides, and the share that stays here."""
        # 1. What was selected, times this party's noise; plus a mask.
        masked, mask = self._masked_noise(selected)
        # 2. Here stays addend - mask; the curator will hold the sum over the parties of noise + mask.
        shares = self._split([x - m for x, m in zip(self._own.addend, mask, strict=True)])
        letters: dict[str, Body] = {
            name: {"share": self._write(share)} for name, share in shares.items() if name != self.name
        }
        letters[CURATOR] = {**letters[CURATOR], "noise": masked}
        return letters, shares[self.name]

    def _masked_noise(self, selected: int) -> tuple[bytes, list[int]]:
        t, key = self.terms, self._curators_key
        packing = t.noise_packing(key)
        # E(f)^(sum_i z_i 2^(w i)) is an encryption of the numbers f z_i, each in its slot.
        powers = tuple(key.multiply(selected, exponent) for exponent in packing.pack(self._own.noise))
        noise = EncryptedVector(key=key, packing=packing, size=t.dimension, bound=t.product_bound, ciphertexts=powers)
        n_bytes = t.share_bits // 8 + 8
        drawn = self._rng.bytes(n_bytes * t.dimension)
        mask = [int.from_bytes(drawn[i : i + n_bytes], "big") for i in range(0, len(drawn), n_bytes)]
        fresh = EncryptedVector.encrypt(mask, key, packing, bound=t.mask_bound, rng=self._rng)
        return noise.add(fresh).to_bytes(), mask

    def _one_ciphertext(self, body: Mapping[str, Value], field: str) -> int:
        (ciphertext,) = self._curators_key.read(take(body, field), 1)
        return ciphertext


class FirstMember(CuratorMember):
    """The first party: it permutes the sizes, holds the key to their blinded shares, and passes selectors on."""

    @property
    def _private_key(self) -> PrivateKey:
        assert self._paillier is not None
        return self._paillier

    def _program(self) -> Program:
        t, key = self.terms, self._curators_key
        others = t.parties[1:]
        # Stage 1.1-1.3. All shares of sizes, in an order that nobody else knows.
        a, b = self._size_shares()
        mail = yield Turn(send={}, subject="", awaits=others, about="size")
        order = self._rng.permutation(t.n_parties).tolist()
        shares = [{"a": a, "b": b}, *(mail[name] for name in others)]
        letter = self._permuted([shares[j] for j in order])
        mail = yield Turn(send={CURATOR: letter}, subject="permuted", awaits=[CURATOR], about="blinded")
        # Stage 1.4-1.6. Blinded shares, in an order that only the curator knows; comparisons.
        modulus = 1 << t.order_bits + 1
        blinded = [
            self._private_key.decrypt(c) % modulus
            for c in self._private_key.public_key.read(take(mail[CURATOR], "shares"), t.n_parties)
        ]
        for level in range(t.n_levels):
            mail = yield from self._compare(blinded, mail, is_last=level == t.n_levels - 1)
        # Stage 2.1-2.2. Undo the first permutation; fresh ciphertexts, so that nobody can follow them.
        indicator = key.read(take(mail[CURATOR], "indicator"), t.n_parties)
        selectors = [0] * t.n_parties
        for place, j in enumerate(order):
            selectors[j] = key.rerandomise(indicator[place], rng=self._rng)
        letters: dict[str, Body] = {
            name: {"selector": key.write([selectors[j]])} for j, name in enumerate(t.parties) if j
        }
        selected, subject = selectors[0], "selector"
        if t.selects == "factor":
            # The sum over the parties of 1 or 0 times their factor is the smallest party's factor.
            mail = yield Turn(send=letters, subject="selector", awaits=others, about="factor")
            (selected,) = key.read(self._times_factor(selectors[0]), 1)
            for name in others:
                selected = key.add(selected, self._one_ciphertext(mail[name], "part"))
            letters = {name: {"selected": key.write([key.rerandomise(selected, rng=self._rng)])} for name in others}
            subject = "selected"
        # Stage 3. The others' shares come in answer to what was selected; ours goes out, and then the curator's comes.
        from_parties = yield Turn(send=letters, subject=subject, awaits=others, about="share")
        letters, own = self._share_letters(selected)
        from_curator = yield Turn(send=letters, subject="share", awaits=[CURATOR], about="share")
        return Finish(share=self._gather(own, {**from_parties, **from_curator}))

    def _permuted(self, shares: list[Mapping[str, Value]]) -> dict[str, Value]:
        """The shares as the curator gets them: his own in fresh ciphertexts under his key, the others under ours."""
        t, own, curators = self.terms, self._private_key.public_key, self._curators_key
        firsts = [int.from_bytes(take(share, "a"), "big") % (1 << t.order_bits + 1) for share in shares]
        seconds = [curators.rerandomise(self._one_ciphertext(share, "b"), rng=self._rng) for share in shares]
        return {"a": own.write([own.encrypt(a, rng=self._rng) for a in firsts]), "b": curators.write(seconds)}

    def _compare(self, blinded: list[int], mail: Mail, *, is_last: bool) -> Generator[Turn, Mail, Mail]:
        """One level of the tournament: for each pair that the curator names, its two messages."""
        t = self.terms
        comparison = SecureComparison(t.order_bits, self._private_key.public_key)
        modulus = 1 << t.order_bits + 1
        pairs = read_pairs(mail[CURATOR].get("pairs"), t.n_parties)
        differences = [(blinded[i] - blinded[j]) % modulus for i, j in pairs]
        requests = b"".join(comparison.request(self._private_key, x, rng=self._rng) for x in differences)
        mail = yield Turn(send={CURATOR: {"requests": requests}}, subject="requests", awaits=[CURATOR], about="tests")
        tests = cut(take(mail[CURATOR], "tests"), comparison.test_bytes, len(pairs))
        outcomes = [comparison.outcome(self._private_key, test, x) for test, x in zip(tests, differences, strict=True)]
        return (
            yield Turn(
                send={CURATOR: {"outcomes": bytes(outcomes)}},
                subject="outcomes",
                awaits=[CURATOR],
                about="indicator" if is_last else "pairs",
            )
        )
