"""How a value in a file is matched to a declared category, class or binary value.

Files disagree about how to write the same thing: 1, 1.0, "1", True, "Yes", "yes". Every value and every declared name
is brought to one normal form, and the forms are compared: "M" and "m" are the same label. The same rule is written
twice, here for NumPy and as SQL in `sql.py`, and a test holds the two together.
"""

from __future__ import annotations

import difflib
import re
import string
from collections.abc import Iterable, Mapping, Sequence

MISSING_TEXT = ("", "na", "nan", "null", "?")
"""What counts as missing in a text column: without surrounding space, and in small letters."""

BLANKS = " \t\r\n"
NO_WORDS = ("0", "false", "no")
YES_WORDS = ("1", "true", "yes")
LARGE, SMALL = string.ascii_uppercase, string.ascii_lowercase
"""Letters of which the case does not matter. Others have rules on which programs differ, so theirs does."""
_SMALLER = str.maketrans(LARGE, SMALL)
WHOLE_NUMBER = r"-?[0-9]+\.0*"


def small(text: str) -> str:
    """A text without surrounding space, in small letters."""
    return text.strip(BLANKS).translate(_SMALLER)


def normal(value: object) -> str:
    """The form in which labels are compared: trimmed text in small letters, 1.0 as "1"."""
    text = small(str(value))
    if re.fullmatch(WHOLE_NUMBER, text):
        return text.split(".")[0]
    return text


def code_of(names: Sequence[str], aliases: Mapping[str, Sequence[str]] | None = None) -> dict[str, int]:
    """The code of every normal form that stands for one of the names: its position among them.

    Two names that mean no and yes (in either order) also answer to the other words for no and yes, and every name to
    its aliases.
    """
    codes = {normal(name): position for position, name in enumerate(names)}
    others = {normal(other): codes[normal(name)] for name, listed in (aliases or {}).items() for other in listed}
    if len(codes) == 2:
        first, second = codes
        for no_code, yes_code, no, yes in ((0, 1, first, second), (1, 0, second, first)):
            if no in NO_WORDS and yes in YES_WORDS:
                codes.update(dict.fromkeys(NO_WORDS, no_code) | dict.fromkeys(YES_WORDS, yes_code))
    return others | codes


def near(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, whatever its case; None if none is near."""
    forms = {name.casefold(): name for name in reversed(list(known))}
    close = difflib.get_close_matches(word.casefold(), forms, n=1)
    return forms[close[0]] if close else None
