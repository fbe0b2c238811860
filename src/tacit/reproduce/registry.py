"""Every result that can be made again, by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from tacit.errors import SettingError
from tacit.reproduce import du, hamm, hoseinpour, pathak, wang
from tacit.reproduce.result import Publication, Reproduction

DOCUMENTS: tuple[Publication, ...] = (
    pathak.DOCUMENT,
    hamm.DOCUMENT,
    du.DOCUMENT,
    hoseinpour.DOCUMENT,
    wang.DOCUMENT,
)
REPRODUCTIONS: dict[str, Reproduction] = {result.name: result for each in DOCUMENTS for result in each.results}


def chosen(names: Sequence[str]) -> list[Reproduction]:
    """The results of these names, in the registry's order; a document's name takes all of its results.

    Raises:
        SettingError: if a name is unknown; it suggests the nearest one.
    """
    documents = {document.name for document in DOCUMENTS}
    for name in names:
        if name not in REPRODUCTIONS and name not in documents:
            close = difflib.get_close_matches(name, [*REPRODUCTIONS, *documents], n=1)
            hint = f"did you mean {close[0]!r}?" if close else "`tacit reproduce --list` tells all names"
            raise SettingError(f"there is no reproduction {name!r}; {hint}")
    return [each for each in REPRODUCTIONS.values() if each.name in names or each.document in names]
