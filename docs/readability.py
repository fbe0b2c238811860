"""Count the sentences that are too long to read: `python docs/readability.py [FILE ...]` lists those over 30 words.

Without a file it reads README, the tutorial and other pages that are written by hand. Code and addresses count as one
word. A line of a list, a cell of a table and a heading end a sentence; a colon and a semicolon do not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

MOST_WORDS = 30
DOCS = Path(__file__).parent
PAGES = (
    "../README.md", "index.md", "tutorial.md", "choose-method.md", "choose-epsilon.md", "glossary.md", "statistics.md",
    "runbook.md", "peers.md", "steward.md", "study-file.md", "federation.md", "web.md", "person.md", "stopping.md",
    "limits.md", "threat-model.md", "api.md", "formats.md", "noise.md", "dependencies.md", "architecture.md",
    "performance.md", "cli.md", "scale.md", "unlike.md", "forecast.md",
)  # fmt: skip

_WORD = re.compile(r"[A-Za-z0-9][\w'.,+-]*")


def long_sentences(text: str) -> list[str]:
    """The sentences of a plain text with more than 30 words."""
    sentences = re.split(r"(?<=[.!?])[\"')*_]*\s+(?=[A-Z0-9\"'(`*_])|\n\n+", text)
    flat = (" ".join(sentence.split()) for sentence in sentences)
    return [sentence for sentence in flat if len(_WORD.findall(sentence)) > MOST_WORDS]


def prose_of_markdown(text: str) -> str:
    """What a reader reads of a page: no code, no addresses; what stands apart is apart."""
    text = re.sub(r"^```.*?^```$|^\$\$.*?^\$\$$|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^( {4}|\t).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|<(https?:[^>]*)>", r"\1", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    text = re.sub(r"^\|(.*)\|$", lambda row: "\n\n" + row[1].replace("|", "\n\n") + "\n\n", text, flags=re.MULTILINE)
    return re.sub(r"^(#+ .*|[-*] |\d+\. )", r"\n\n\1\n\n", text, flags=re.MULTILINE).replace("\n\n- \n\n", "\n\n")


class _Prose(HTMLParser):
    """The text of a page of HTML; what is a block of its own stands apart."""

    APART = frozenset(
        ("p", "li", "td", "th", "h1", "h2", "h3", "h4", "dt", "dd", "div", "section", "summary", "caption", "legend")
    )
    SILENT = frozenset(("script", "style", "svg", "pre", "code", "math"))

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, or something that is not read."""
        self._silent += tag in self.SILENT
        if tag in self.APART:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        """End it."""
        self._silent -= tag in self.SILENT
        if tag in self.APART:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        """Keep what is read."""
        if not self._silent:
            self.parts.append(data)


def prose_of_html(text: str) -> str:
    """What a reader reads of a page of HTML."""
    parser = _Prose()
    parser.feed(text)
    return "".join(parser.parts)


def main(names: Iterable[str]) -> int:
    """Print every sentence that is too long, with its page; 1 if there is one."""
    found = 0
    for path in [Path(name) for name in names] or [DOCS / page for page in PAGES]:
        text = path.read_text(encoding="utf-8")
        prose = prose_of_html(text) if path.suffix == ".html" else prose_of_markdown(text)
        for sentence in long_sentences(prose):
            found += 1
            print(f"{path.name}: {len(_WORD.findall(sentence))} words: {sentence}")
    print(f"{found} sentences have more than {MOST_WORDS} words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
