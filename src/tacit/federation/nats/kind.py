"""The kinds of letters, how long each may be, and what a handler replies to one."""

from __future__ import annotations

from dataclasses import dataclass

from tacit import wire

ASK = "ask"
ANSWER = "answer"
REFUSAL = "refusal"
STUDY = "study"
MEMBERS = "members"
CONSENT = "consent"
HELLO = "hello"
BEGIN = "begin"
ABANDON = "abandon"
SPENT = "spent"
NODE = "node"
CARD = "card"
PEERS = "peers"
PING = "ping"
JOIN = "join"
WELCOME = "welcome"
CLOCK_TIME = "clock"
ROTATE = "rotate"
ROTATED = "rotated"
CALLS = (HELLO, BEGIN, ABANDON, SPENT, NODE, CARD, PEERS, PING)
NODE_CALLS = (NODE, CARD, PEERS, PING)
PARTY_CALLS = tuple(kind for kind in CALLS if kind == PING or kind not in NODE_CALLS)

# How many bytes the body of a letter may have. What carries numbers is bounded by what the server takes, what carries a
# list of members by 20,000 of them, and whatever only says a word or two by a few kilobytes.
_NUMBERS, _LIST, _WORDS = 60 << 20, 8 << 20, 16 << 10
_MOST_BYTES = {
    ASK: _NUMBERS, ANSWER: _NUMBERS, NODE: _NUMBERS, MEMBERS: _LIST, BEGIN: _LIST, HELLO: _LIST, STUDY: 4 << 20,
    PEERS: 256 << 10, CARD: 64 << 10,
}  # fmt: skip
_MOST_REASON = 1000  # characters
MOST_CHANGES = 16  # of consents, that one letter tells of


def most_bytes(kind: str) -> int:
    """How many bytes the body of a letter of this kind may have."""
    return _MOST_BYTES.get(kind, _WORDS)


@dataclass(frozen=True, kw_only=True)
class LetterReply:
    """What a handler replies to a letter: its kind, and its encoded contents."""

    kind: str
    body: bytes


def refusal(error: str, why: str) -> LetterReply:
    """A refusal: its kind, and why, cut to what a reader can use."""
    return LetterReply(kind=REFUSAL, body=wire.encode({"error": error, "why": why[:_MOST_REASON]}))
