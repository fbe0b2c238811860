"""The eight headings with which a method's or protocol's file opens."""

from __future__ import annotations

import textwrap

from tacit.report.facts import HEADINGS


def parse_headings(text: str) -> dict[str, str]:
    """The eight headings of a method's or protocol's docstring, each with its text on one line."""
    found: dict[str, list[str]] = {}
    current: str | None = None
    for line in textwrap.dedent(text).splitlines():
        word, _, rest = line.partition(" ")
        if word in HEADINGS and word not in found:
            current = word
            found[current] = [rest.strip()]
        elif current is not None and line.startswith(" ") and line.strip():
            found[current].append(line.strip())
        else:
            current = None
    return {heading: " ".join(lines) for heading, lines in found.items()}
