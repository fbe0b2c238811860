"""The kinds of letters, and what a handler replies to one."""

from __future__ import annotations

from dataclasses import dataclass

ASK = "ask"
ANSWER = "answer"
REFUSAL = "refusal"
STUDY = "study"
MEMBERS = "members"
CONSENT = "consent"
HELLO = "hello"
BEGIN = "begin"
SPENT = "spent"
NODE = "node"
CARD = "card"
PEERS = "peers"
PING = "ping"
JOIN = "join"
WELCOME = "welcome"
CLOCK_TIME = "clock"
CALLS = (HELLO, BEGIN, SPENT, NODE, CARD, PEERS, PING)


@dataclass(frozen=True, kw_only=True)
class LetterReply:
    """What a handler replies to a letter: its kind, and its encoded contents."""

    kind: str
    body: bytes
