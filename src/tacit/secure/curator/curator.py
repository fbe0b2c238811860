"""The curator's part of the protocol: Charlie, as Pathak, Rane and Raj call him."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from tacit.errors import WireError
from tacit.rand import Rng
from tacit.secure.curator.comparison import SecureComparison, cut
from tacit.secure.curator.letter import Body
from tacit.secure.curator.role import Finish, Mail, Program, Role, Turn, take
from tacit.secure.curator.terms import CURATOR, CuratorTerms
from tacit.secure.paillier.key import PrivateKey, uniform_below
from tacit.secure.paillier.vector import EncryptedVector
from tacit.wire import Value


class Curator(Role):
    """The curator: he finds the place of the smallest in an order that he does not know, and adds up masked noise."""

    def __init__(self, terms: CuratorTerms, *, rng: Rng, key: PrivateKey | None = None) -> None:
        """Take part, with a new key or with one that serves many runs."""
        super().__init__(CURATOR, terms, rng=rng, key=key)

    @property
    def _private_key(self) -> PrivateKey:
        assert self._paillier is not None
        return self._paillier

    def _program(self) -> Program:
        t, own = self.terms, self._private_key.public_key
        # Stage 1.1-1.3. The shares of all sizes, in the first party's order.
        mail = yield Turn(send={}, subject="", awaits=[t.first], about="permuted")
        # Stage 1.4. Blind and permute.
        order = self._rng.permutation(t.n_parties).tolist()
        blinded, kept = self._blind(mail[t.first], order)
        # Stage 1.5-1.6. A tournament for the smallest.
        smallest = yield from self._tournament(blinded, kept)
        # Stage 2.1. A 1 in the place that the smallest had before our permutation, 0 elsewhere.
        indicator = [own.encrypt(mark, rng=self._rng) for mark in self._marks(order[smallest])]
        letter = {"indicator": own.write(indicator)}
        mail = yield Turn(send={t.first: letter}, subject="indicator", awaits=t.parties, about="share")
        # Stage 3. The sum of the parties' noise and masks, shared afresh; and our published share.
        shares = self._split(self._total_noise(mail))
        letters: dict[str, Body] = {name: {"share": self._write(shares[name])} for name in t.parties}
        return Finish(send=letters, subject="share", share=self._gather(shares[CURATOR], mail))

    def _marks(self, smallest: int) -> list[int]:
        """What stands, encrypted, in each place."""
        return [int(place == smallest) for place in range(self.terms.n_parties)]

    def _blind(self, body: Mapping[str, Value], order: list[int]) -> tuple[bytes, list[int]]:
        """The first party's shares plus r, ours less r, both in our order."""
        t, key, own = self.terms, self._keys[self.terms.first], self._private_key.public_key
        theirs = key.read(take(body, "a"), t.n_parties)
        ours = [self._private_key.decrypt(c) for c in own.read(take(body, "b"), t.n_parties)]
        span = 1 << t.order_bits + 65  # 64 bits more than the shares have
        r = [uniform_below(span, rng=self._rng) for _ in range(t.n_parties)]
        blinded = [key.add(theirs[k], key.encrypt(r[k], rng=self._rng)) for k in order]
        return key.write(blinded), [(ours[k] - r[k]) % (1 << t.order_bits + 1) for k in order]

    def _tournament(self, blinded: bytes, kept: list[int]) -> Generator[Turn, Mail, int]:
        """The place of the smallest: pairs are compared, the smaller ones again, until one is left."""
        t = self.terms
        alive = list(range(t.n_parties))
        letter: Body = {"shares": blinded}
        subject = "blinded"
        while True:
            pairs = list(zip(alive[::2], alive[1::2], strict=False))
            letter = {**letter, "pairs": [place for pair in pairs for place in pair]}
            smaller = yield from self._compare(pairs, kept, letter, subject)
            winners = [i if is_smaller else j for (i, j), is_smaller in zip(pairs, smaller, strict=True)]
            alive = winners + alive[2 * len(pairs) :]
            if len(alive) == 1:
                return alive[0]
            letter, subject = {}, "pairs"

    def _compare(
        self, pairs: list[tuple[int, int]], kept: list[int], letter: Body, subject: str
    ) -> Generator[Turn, Mail, list[bool]]:
        """Whether the first of each pair is the smaller one."""
        t = self.terms
        comparison = SecureComparison(t.order_bits, self._keys[t.first])
        ys = [(kept[i] - kept[j]) % (1 << t.order_bits + 1) for i, j in pairs]
        flips = self._rng.bits(len(pairs)).astype(int).tolist()
        mail = yield Turn(send={t.first: letter}, subject=subject, awaits=[t.first], about="requests")
        requests = cut(take(mail[t.first], "requests"), comparison.request_bytes, len(pairs))
        tests = [
            comparison.test(request, y, flip, rng=self._rng)
            for request, y, flip in zip(requests, ys, flips, strict=True)
        ]
        mail = yield Turn(
            send={t.first: {"tests": b"".join(tests)}}, subject="tests", awaits=[t.first], about="outcomes"
        )
        outcomes = take(mail[t.first], "outcomes")
        if len(outcomes) != len(pairs) or max(outcomes) > 1:
            raise WireError(f"{len(pairs)} outcomes of 0 or 1 are due; the message has {len(outcomes)} bytes")
        return [comparison.is_smaller(outcome, y, flip) for outcome, y, flip in zip(outcomes, ys, flips, strict=True)]

    def _total_noise(self, mail: Mail) -> list[int]:
        """The sum over the parties of masked noise; it is uniform to us, whatever the noise is."""
        t, key = self.terms, self._private_key.public_key
        packing = t.noise_packing(key)
        parts = [
            EncryptedVector.from_bytes(
                take(body, "noise"), key, packing, size=t.dimension, bound=t.product_bound + t.mask_bound
            )
            for body in mail.values()
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total.add(part)
        return total.decrypt(self._private_key)
