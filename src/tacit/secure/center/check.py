"""One node's side of checking addends: nodes tell each other their shares of the parties' proofs, then each decides.

The coordinator carries what nodes tell each other, in boxes that only the other node can open and only this one could
have made (libsodium's authenticated boxes between the nodes' pinned keys). So it can withhold a box, and then nothing
is opened, but it can neither read one nor let a party pass that fails. The proof and its proof are in `secure.proof`.

A node that lies can have an honest party refused, and one that conspires with a party can let that party pass; neither
learns anything by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey

from tacit.errors import AddendRefused, CenterError, WireError
from tacit.record import decode_record, encode_record
from tacit.secure.bound import Bound, terms_of
from tacit.secure.envelope import Contents
from tacit.secure.proof import DIGEST_BYTES, CheckShare, Commitment, check_shares, is_zero, masked
from tacit.secure.ring import Words, add
from tacit.secure.ring import total as sum_numbers
from tacit.secure.share import N_NODES, PARTS_HELD

_NUMBERS_AT_ONCE = 1 << 16
_UNPROVED = "its addend is longer than its bound, or its shares do not fit each other"


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A sum of parties' shares at one node, and its shares of their proofs' checks."""

    total: Words = field(repr=False)
    shares: Mapping[str, CheckShare] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class _Told:
    """What one node tells another: of each party, in the order of their names, a digest and a masked share."""

    sender: bytes
    parties: tuple[str, ...]
    challenges: bytes
    words: Words

    def __post_init__(self) -> None:
        n = len(self.parties)
        if len(self.challenges) != n * DIGEST_BYTES or self.words.ndim != 3 or len(self.words) != n:
            raise WireError("a node told other nodes of something else than the parties that it names")

    def share(self, party: str) -> CheckShare | None:
        """What it says of one party."""
        if party not in self.parties:
            return None
        at = self.parties.index(party)
        return CheckShare(challenge=self.challenges[at * DIGEST_BYTES : (at + 1) * DIGEST_BYTES], words=self.words[at])


class AddendCheck:
    """Checks what parties prove of their addends, together with the other two nodes."""

    def __init__(self, index: int, key: PrivateKey, peers: Callable[[], Collection[bytes]]) -> None:
        """`peers` gives the public keys of the other nodes, as this node pinned them."""
        self._index = index
        self._key = key
        self._peers = peers

    def add_up(self, contents: Mapping[str, Contents], nodes: Iterable[bytes]) -> Checked:
        """The sum of the parties' shares, with this node's masked shares of the checks.

        Raises:
            AddendRefused: naming those whose shares are not as they committed to them.
        """
        pairs = [(box.shared_key(), bytes(self._key.public_key) < peer) for peer, box in self._boxes(nodes).items()]
        bound = next(iter(contents.values())).label.bound  # all state the same
        terms, names = terms_of(bound), list(contents)
        several = max(1, _NUMBERS_AT_ONCE // terms.n_words)
        total = np.zeros((PARTS_HELD, terms.size, 2), dtype=np.uint64)
        shares: dict[str, CheckShare] = {}
        refused: dict[str, str] = {}
        for start in range(0, len(names), several):
            opened = self._open({name: contents[name] for name in names[start : start + several]}, refused)
            if refused:
                continue  # name all of them, and add up none
            words = np.stack([one for one, _ in opened.values()])
            stated = [(contents[name].label.statement, commitment) for name, (_, commitment) in opened.items()]
            found = check_shares(self._index, words, bound, stated)
            shares |= {name: masked(share, pairs) for name, share in zip(opened, found, strict=True)}
            total = add(total, sum_numbers(np.moveaxis(words[:, :, : terms.size], 0, -2)))
        if refused:
            raise AddendRefused(refused)
        return Checked(total=total, shares=shares)

    def _open(self, contents: Mapping[str, Contents], refused: dict[str, str]) -> dict[str, tuple[Words, Commitment]]:
        opened: dict[str, tuple[Words, Commitment]] = {}
        for party, found in contents.items():
            try:
                opened[party] = found.proved(self._index)
            except CenterError as error:
                refused[party] = str(error)
        return opened

    def tell(self, checked: Checked, nodes: Iterable[bytes]) -> dict[str, bytes]:
        """A box for each other node, by that node's key in hexadecimal."""
        parties = tuple(sorted(checked.shares))
        message = encode_record(
            _Told(
                sender=bytes(self._key.public_key),
                parties=parties,
                challenges=b"".join(checked.shares[party].challenge for party in parties),
                words=np.stack([checked.shares[party].words for party in parties]),
            )
        )
        return {peer.hex(): bytes(box.encrypt(message)) for peer, box in self._boxes(nodes).items()}

    def judge(self, checked: Checked, boxes: Mapping[str, bytes]) -> None:
        """Refuse those whose proof does not hold, by name.

        Raises:
            AddendRefused: naming them.
            CenterError: if a box is missing or was not made by that node for this one.
        """
        told = [self._read(sender, box, boxes[sender.hex()]) for sender, box in self._boxes(_keys(boxes)).items()]
        if any(set(found.parties) != set(checked.shares) for found in told):
            raise CenterError("the nodes were asked to check different parties in one sum; ask all for the same")
        refused = {}
        for party, own in checked.shares.items():
            others = [one for one in (found.share(party) for found in told) if one is not None]
            if not is_zero([own, *others]):
                refused[party] = _UNPROVED
        if refused:
            raise AddendRefused(refused)

    def _read(self, sender: bytes, box: Box, message: bytes) -> _Told:
        try:
            told = decode_record(_Told, box.decrypt(message))
        except (CryptoError, WireError, ValueError) as error:
            raise CenterError("what another node told of the parties' proofs was altered on the way") from error
        if told.sender != sender:
            raise CenterError("what a node told of the parties' proofs came back as another's")
        return told

    def _boxes(self, nodes: Iterable[bytes]) -> dict[bytes, Box]:
        """A box with each of the other nodes, which must be pinned."""
        others = sorted(set(nodes) - {bytes(self._key.public_key)})
        known = self._peers()
        if len(others) != N_NODES - 1 or any(other not in known for other in others):
            raise CenterError(
                f"a node checks addends with the {N_NODES - 1} others that it knows; it was told of {len(others)}, or "
                f"of strangers: let all nodes run, so that they learn of each other"
            )
        return {other: Box(self._key, PublicKey(other)) for other in others}


def same_terms(contents: Mapping[str, Contents]) -> None:
    """Refuse addends that state something else than most: all derive sizes, bounds and numbers from one plan.

    Nothing was stretched before this, whatever size somebody states.

    Raises:
        AddendRefused: naming the odd ones out.
        CenterError: if there is no majority.
    """
    stated = {party: _stated(found) for party, found in contents.items()}
    (most, count), *rest = Counter(stated.values()).most_common()
    if not rest:
        return
    if 2 * count <= len(stated):
        raise CenterError(f"parties {', '.join(map(repr, stated))} state different terms of one sum, and none most")
    raise AddendRefused(
        {
            party: f"it sent {own[0]} numbers on other terms than most, who sent {most[0]}"
            for party, own in stated.items()
            if own != most
        }
    )


def _stated(found: Contents) -> tuple[int, Bound, int, str, str]:
    """What all parties of a sum state alike."""
    label = found.label
    return found.size, label.bound, label.n_parties, label.contrasts, label.run


def _keys(boxes: Mapping[str, bytes]) -> list[bytes]:
    try:
        return [bytes.fromhex(name) for name in boxes]
    except ValueError as error:
        raise WireError("boxes of nodes are named by their keys") from error
