"""What a reproduction gives: words, a table and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Result:
    """One table or figure of a document beside ours."""

    title: str
    words: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    pictures: Mapping[str, str] = field(default_factory=dict)  # file name -> SVG

    def markdown(self) -> str:
        """The result as a page; pictures are linked by their file names."""
        lines = [
            f"# {self.title}",
            "",
            self.words,
            "",
            f"| {' | '.join(self.columns)} |",
            "|---" * len(self.columns) + "|",
        ]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        for name in self.pictures:
            lines += ["", f"![{name}]({name})"]
        return "\n".join(lines) + "\n"
