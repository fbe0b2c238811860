"""A page for each method: when to take it, its formula and proof, what the audit measured, who sees what, its settings.

What is said of use and formula stands in `method_notes.toml`. All else is taken from where it is at home: the method's
file, the words that data owners read, the audit's page and the accuracy's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tacit.methods import METHODS
from tacit.methods.method import Method
from tacit.report.facts import HEADINGS
from tacit.studies.plain_words import PLAIN_WORDS

DOCS = Path(__file__).parent
NOTES = tomllib.loads((DOCS / "method_notes.toml").read_text(encoding="utf-8"))

# Where a proof does not stand in the method's own file.
PROOF_HOME = {
    "functional-mechanism": "tacit.methods.functional.statistic",
    "objective-perturbation": "tacit.methods.objective.statistic",
}
ACCURACY = ("adult_dpml", "accuracy", "accuracy.md#adult_dpml-replace-one")
ASIDE = re.compile(r"^(Why|Descent|The noise carries|A majority|Against|Exact Gaussian)\b")


def pages() -> dict[str, str]:
    """Every method's page, by its file name under docs/."""
    return {f"methods/{name}.md": page(name, method) for name, method in METHODS.items()}


def page(name: str, method: type[Method]) -> str:
    """One method's page."""
    note, words, told = NOTES[name], PLAIN_WORDS[name], method.headings()
    parts = [
        f"# {name}",
        f"`tacit.{method.__name__}`: {_first_line(method.__doc__)}",
        f"**What it is for.** {_flat(note['use'])}",
        "## In plain words",
        f"**What happens to a person's record.** {words.record}",
        f"**What anybody sees of it.** {words.seen}",
        f"**What could go wrong.** {words.risk}",
        "## Formula",
        *(f"$$\n{line}\n$$" for line in note["formula"]),
        _flat(note["letters"]),
        *proof_part(name, method),
        *audit_part(name, method),
        *accuracy_part(name),
        "## Who sees what",
        "| | what holds |\n|---|---|\n" + "\n".join(f"| **{each}** | {_cell(told[each])} |" for each in HEADINGS),
        "## Settings",
        "\n".join(f"- `{setting}`: {plain_text(text)}" for setting, text in settings(method.__doc__ or "")),
        *example_part(method),
        "More: [all methods side by side](../methods.md), [the Python interface](../api.md), "
        f"`{_file(method.__module__)}`.",
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def proof_part(name: str, method: type[Method]) -> Iterator[str]:
    """The proof in the method's own words, a sentence a step; of exact methods, why there is none."""
    home = PROOF_HOME.get(name, method.__module__)
    paragraphs = (import_module(home).__doc__ or "").strip().split("\n\n")
    start = next((k for k, paragraph in enumerate(paragraphs) if paragraph.startswith("Proof")), None)
    if start is None:
        yield "## Proof"
        yield "No noise is added and no epsilon is promised, so that there is none. *Who sees what* is the whole claim."
        return
    end = next((k for k in range(start, len(paragraphs)) if ASIDE.match(paragraphs[k])), len(paragraphs))
    yield "## Proof"
    yield f"In the words of `{_file(home)}`, where the code that it is about stands."
    proof = paragraphs[start:end]
    if any(re.search(r"^( {4}|\(?\d[.)] )", line, re.MULTILINE) for line in proof):
        yield "```text\n" + "\n\n".join(proof) + "\n```"
    else:
        steps = [step for paragraph in proof for step in sentences(re.sub(r"^Proof( \(.*?\))?\. ", "", paragraph))]
        yield "\n".join(f"{k}. {plain_text(step)}" for k, step in enumerate(steps, 1))
    aside = [paragraph for paragraph in paragraphs[end:] if ASIDE.match(paragraph) and "\n1. " not in paragraph]
    if aside:
        yield "\n\n".join(plain_text(" ".join(paragraph.split())) for paragraph in aside)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph: each ends before a capital, a formula's start or the end."""
    return re.split(r"(?<=[.:])(?<!\bNo\.)(?<! e\.g\.) (?=[A-Z(`])", " ".join(text.split()))


def audit_part(name: str, method: type[Method]) -> Iterator[str]:
    """What the audit's page says of the method."""
    lines = (DOCS / "audit.md").read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith(("| method", "|---"))][:2]
    rows = [line for line in lines if line.startswith(f"| {name} |")]
    yield "## Audit"
    if rows:
        yield "From [the audit](../audit.md): many runs on worst-case neighbours bound epsilon from below."
        yield "\n".join([*head, *rows])
        yield f"Try to refute it yourself: `tacit audit {name}`."
    elif "NotPrivate" in method.headings()["Privacy"].split(".")[0][:12]:
        yield "It promises no epsilon, so that there is nothing to refute."
    else:
        yield "Its keys make a run slow, so that it is audited in the tests alone, with short keys."


def accuracy_part(name: str) -> Iterator[str]:
    """The picture of accuracy against epsilon, where the method is in it."""
    page = (DOCS / "accuracy.md").read_text(encoding="utf-8")
    data_set, measure, place = ACCURACY
    yield "## Accuracy"
    if f"\n| {name} |" in page:
        yield f"On {data_set}, with five parties and one record replaced. Other sets and peers: [accuracy](../{place})."
        yield f"![accuracy of {name} and others against epsilon on {data_set}](../accuracy-{data_set}-{measure}.svg)"
    elif name in ("privlogit", "secure-newton", "pooled"):
        yield "It is the exact fit: *the plain fit* on [the page of accuracy](../accuracy.md)."
    else:
        yield (
            "It is in none of these pictures. `tacit compare study.toml --methods "
            + name
            + "` draws one on your study."
        )


def settings(docstring: str) -> list[tuple[str, str]]:
    """The settings in the Args section of a class's docstring, with what each is."""
    section = docstring.partition("Args:\n")[2].split("\n\n")[0]
    found: list[tuple[str, str]] = []
    for line in section.splitlines():
        if opening := re.match(r"^ {8}(\w+): (.*)", line):
            found.append((opening[1], opening[2]))
        elif found and line.startswith(" " * 12):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found


def example_part(method: type[Method]) -> Iterator[str]:
    """The example of the class's docstring, which a test runs."""
    if code := example(method.__doc__ or ""):
        yield "## Example"
        yield f"```pycon\n{code}\n```"


def example(docstring: str) -> str:
    """The doctest of a docstring, without its indent."""
    lines = docstring.expandtabs().splitlines()
    first = next((k for k, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
    if first is None:
        return ""
    indent = len(lines[first]) - len(lines[first].lstrip())
    kept = []
    for line in lines[first:]:
        if line.strip() and len(line) - len(line.lstrip()) < indent:
            break
        kept.append(line[indent:].rstrip())
    return "\n".join(kept).rstrip()


def _first_line(docstring: str | None) -> str:
    return (docstring or "").splitlines()[0]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _file(module: str) -> str:
    return f"src/{module.replace('.', '/')}.py"


def plain_text(text: str) -> str:
    """Text whose signs mean themselves in Markdown; code stays code."""
    return "".join(
        part if k % 2 else re.sub(r"([*\[\]<])", r"\\\1", part) for k, part in enumerate(re.split(r"(`[^`]*`)", text))
    )


def _cell(text: str) -> str:
    return plain_text(text).replace("|", "\\|")
