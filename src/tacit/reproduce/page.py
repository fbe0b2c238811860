"""Pages of reproductions: a page a document, and an index of all results at a glance.

A folder holds a JSON file for each finished result. The pages are written from these files, so that a run of a single
result leaves the others as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tacit.errors import DataError
from tacit.reproduce.registry import DOCUMENTS, REPRODUCTIONS
from tacit.reproduce.result import Number, NumberTable, Publication, Reproduction
from tacit.reproduce.run import FinishedResult, finished_from
from tacit.storage import write_whole

INDEX = "index.md"
_KNOWN = {"printed": "printed", "words": "read from its words", "not given": "not given"}


def write_result(finished: FinishedResult, folder: Path) -> None:
    """Write the numbers and the pictures of one result."""
    name = finished.reproduction.name
    write_whole(folder / f"{name}.json", json.dumps(finished.as_json(), indent=1) + "\n")
    for file, draw in finished.reproduction.summarise(finished.values).pictures.items():
        write_whole(folder / file, draw())


def read_results(folder: Path) -> dict[str, FinishedResult]:
    """The finished results that a folder holds, by name, as far as their versions are today's.

    Raises:
        DataError: if a file is not what `write_result` has written.
    """
    found = {}
    for name, reproduction in REPRODUCTIONS.items():
        path = folder / f"{name}.json"
        if not path.is_file():
            continue
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["version"] == reproduction.version:
                found[name] = finished_from(kept, reproduction)
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path} is no result of `tacit reproduce`; delete it and make it again") from None
    return found


def write_pages(folder: Path) -> list[Path]:
    """Write the page of each document that has a result in the folder, and the index; tell their paths."""
    paths = []
    for file, text in pages(read_results(folder)).items():
        write_whole(folder / file, text)
        paths.append(folder / file)
    return paths


def pages(results: Mapping[str, FinishedResult]) -> dict[str, str]:
    """The pages by file name."""
    found = {INDEX: index_page(results)}
    for document in DOCUMENTS:
        mine = [results[each.name] for each in document.results if each.name in results]
        if mine:
            found[f"{document.name}.md"] = document_page(document, mine)
    return found


def index_page(results: Mapping[str, FinishedResult]) -> str:
    """All results at a glance."""
    counted = [each for each in REPRODUCTIONS.values() if each.kind != "theorem"]
    done = sum(each.name in results for each in counted)
    lines = [
        "# The documents' tables and figures, made again",
        "",
        "Written by `tacit reproduce --all --out docs/reproduction`. Each line is a table, a figure or a theorem of a",
        "document. The verdict says whether what the document claims of it holds in our runs. *As printed* is the",
        "document's own calibration, which is NOT PRIVATE where its page says so; *sound* keeps its promise.",
        "",
        "Where a document says *comparable* or *slightly* and gives no number, the sentence tells what we ask. Such",
        "limits are ours, and some were set when the numbers were known.",
        "",
        f"{done} of {len(counted)} tables and figures have been made again. That took {total_seconds(results):,.0f}",
        "seconds of one processor at most; the last column has those of each result, with cells that it shares. Some",
        "cells of an early run have seconds of the clock, which are more: other work ran beside them.",
    ]
    for document in DOCUMENTS:
        made = any(each.name in results for each in document.results)
        title = f"[{document.title}]({document.name}.md)" if made else document.title
        lines += ["", f"## {title}", "", "| result | what | verdict | in a sentence | seconds |"]
        lines += ["|---|---|---|---|---:|"]
        lines += [_index_line(each, results.get(each.name)) for each in document.results]
    return "\n".join(lines) + "\n"


def total_seconds(results: Mapping[str, FinishedResult]) -> float:
    """What all results took; a cell that several share counts once."""
    once = {}
    for name, finished in results.items():
        for cell in finished.reproduction.cells(finished.quick):
            once[cell.shared_with or name, cell.key] = float(finished.cells[cell.key]["seconds"])
    return sum(once.values())


def _index_line(reproduction: Reproduction, finished: FinishedResult | None) -> str:
    if finished is None:
        return f"| `{reproduction.name}` | {reproduction.title} | not run | | |"
    link = f"[`{reproduction.name}`]({reproduction.document}.md#{anchor(reproduction)})"
    quick = " (quick run)" if finished.quick else ""
    return (
        f"| {link} | {reproduction.title} | **{finished.verdict}**{quick} | {finished.findings[0].why} | "
        f"{finished.seconds:,.0f} |"
    )


def anchor(reproduction: Reproduction) -> str:
    """The heading's anchor, as Markdown's readers make it."""
    return reproduction.name.replace(".", "")


def document_page(document: Publication, results: Sequence[FinishedResult]) -> str:
    """The results of a document, one after the other."""
    lines = [
        f"# {document.title}",
        "",
        f"Written by `tacit reproduce {document.name} --out docs/reproduction`. [All results](index.md).",
    ]
    return "\n\n".join(["\n".join(lines), *(result_section(finished) for finished in results)]) + "\n"


def result_section(finished: FinishedResult) -> str:
    """One result: verdict, claims, setting, numbers and pictures."""
    reproduction = finished.reproduction
    summary = reproduction.summarise(finished.values)
    parts = [
        f"## {reproduction.name}",
        f"{reproduction.title}: **{finished.verdict}**" + (" (quick run)." if finished.quick else "."),
        claims_table(finished).markdown(),
        f"*Setting.* {reproduction.setting}",
    ]
    if reproduction.data:
        parts.append(f"*Data.* {', '.join(reproduction.data)}. {reproduction.stand_in}".rstrip())
    if reproduction.numbers:
        parts.append(f"*The document's numbers.* {_sources(reproduction.numbers)}")
    parts += [table.markdown() for table in summary.tables]
    parts += [f"![{file}]({file})" for file in summary.pictures]
    parts.append(f"Seeds and all numbers: [{reproduction.name}.json]({reproduction.name}.json).")
    return "\n\n".join(parts)


def claims_table(finished: FinishedResult) -> NumberTable:
    """What the document says, and what is found."""
    claims = zip(finished.reproduction.claims, finished.findings, strict=True)
    rows = [[claim.says, f"**{found.verdict}**", found.why] for claim, found in claims]
    return NumberTable(["the document says", "verdict", "why"], rows)


def _sources(numbers: Sequence[Number]) -> str:
    """Which numbers are printed, which are read from words, and which are not given."""
    told = []
    for known, words in _KNOWN.items():
        mine = [f"{n.what}: {n.value:g}" if n.value is not None else n.what for n in numbers if n.known == known]
        if mine:
            told.append(f"{words[0].upper()}{words[1:]}: {'; '.join(mine)}.")
    return " ".join(told)
