"""Texts that show what they say: no character that a reader cannot see, or that moves what stands around it.

A text from elsewhere is read on a terminal or a page before somebody decides. A control character can move the cursor
over the price, a direction mark can turn a line around, and one of no width makes two names look alike.
"""

from __future__ import annotations

import unicodedata

# Control, format (directions, zero width, tags), halves of pairs, private use, ends of lines and paragraphs.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Characters of other categories that draw nothing: joiners, fillers, selectors of variants, the empty Braille pattern.
_BLANK = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0}
    | {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
)


def unseen(text: str) -> str | None:
    """The first character that a reader would not see, named as U+XXXX; None if all can be seen."""
    return next((_name(c) for c in text if _is_unseen(c)), None)


def shown(text: str) -> str:
    r"""The text with every character that would not be seen written out, such as \u001b.

    >>> shown("a" + chr(27) + "[2K" + "b")
    'a\\u001b[2Kb'
    """
    return "".join(_escape(c) if _is_unseen(c) else c for c in text)


def _is_unseen(c: str) -> bool:
    return unicodedata.category(c) in _UNSEEN or ord(c) in _BLANK


def _name(c: str) -> str:
    return f"U+{ord(c):04X} ({unicodedata.name(c, 'a control character').lower()})"


def _escape(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"
