"""The table of measured figures in the README: each is read from the page that its benchmark wrote."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"
EPSILONS = ("0.1", "0.316", "1")


def with_figures(readme: str) -> str:
    """The README with the table as the pages have it now."""
    before, _, rest = readme.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def table() -> str:
    """The table, a row for each figure."""
    rows = [accuracy(), coverage(), *performance()]
    lines = ["| what | measured | command | page |", "|---|---|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def accuracy() -> tuple[str, str, str, str]:
    """PrivateNewton on adult_dpml, against the plain fit."""
    part = _page("accuracy").partition("### adult_dpml, replace-one")[2]
    (plain,) = re.findall(r"Accuracy; the plain fit ([\d.]+)", part)[:1]
    names = _cells(part, "method")
    private = dict(zip(names, _cells(part, "private-newton"), strict=True))
    told = ", ".join(private[epsilon].replace("*", "").split()[0] for epsilon in EPSILONS)
    return (
        f"accuracy of `PrivateNewton` on adult_dpml at epsilon {', '.join(EPSILONS)}; the plain fit of all records",
        f"{told}; {plain}",
        "`python benchmarks/private_accuracy.py`",
        "[accuracy](docs/accuracy.md)",
    )


def coverage() -> tuple[str, str, str, str]:
    """How often 95 % intervals hold the truth, over all rows of the page's first table."""
    lines = [line for line in _page("intervals").splitlines() if re.match(r"\| [a-z].*\| 20,000 \| 6 \| 1 \|", line)]
    covered = [float(line.split("|")[5]) for line in lines]
    return (
        "95 % intervals that hold the truth: 20,000 records, 6 features, epsilon 1, over kinds of rows",
        f"{min(covered):.3f} to {max(covered):.3f}",
        "`python benchmarks/intervals.py`",
        "[intervals](docs/intervals.md)",
    )


def performance() -> list[tuple[str, str, str, str]]:
    """The ratios against scikit-learn."""
    rows = [line.split("|") for line in _page("performance").splitlines() if "against scikit-learn" in line]
    return [(row[1].strip(), row[2].strip(), row[3].strip(), "[performance](docs/performance.md)") for row in rows]


def _page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def _cells(text: str, first: str) -> list[str]:
    (line,) = re.findall(rf"^\| {first} \|(.*)\|$", text, re.MULTILINE)[:1]
    return [cell.strip() for cell in line.split("|")]
