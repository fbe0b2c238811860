"""`tacit methods`: what there is to choose from."""

from __future__ import annotations

import json
import textwrap
from typing import Annotated

import typer

from tacit.cli.console import JsonOutput, out


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A method, for all that is to be said.")] = None,
    json_output: JsonOutput = False,
) -> None:
    """List the methods in two lines each: what it is and when to use it; with a name, all about one.

    Examples:

      tacit methods

      tacit methods private-newton

      tacit methods --json
    """
    from tacit.methods import METHODS, make
    from tacit.studies.method_choice import METHOD_CHOICES

    if name is not None and name not in METHODS:
        make(name)  # names the nearest
    if json_output:
        told = {one: _facts(one) for one in METHODS if name in (None, one)}
        print(json.dumps(told))
        return
    if name is not None:
        out.print("\n".join(_all_about(name)), soft_wrap=True)
        return
    for one in METHODS:
        choice = METHOD_CHOICES[one]
        out.print(f"{one:<24}{choice.what}\n{'':<24}When to use: {choice.when}", soft_wrap=True)
    out.print("\nAll about one: tacit methods NAME", soft_wrap=True)


def _facts(name: str) -> dict[str, object]:
    from tacit.methods import METHODS
    from tacit.studies.method_choice import METHOD_CHOICES

    choice = METHOD_CHOICES[name]
    return {"what": choice.what, "when": choice.when, **METHODS[name].headings()}


def _all_about(name: str) -> list[str]:
    """A method's two lines, in plain words, its settings and its eight headings."""
    import inspect

    from tacit.methods import METHODS
    from tacit.report.text import who_saw_what_text
    from tacit.studies.method_choice import METHOD_CHOICES
    from tacit.studies.plain_words import PLAIN_WORDS

    kind, choice, words = METHODS[name], METHOD_CHOICES[name], PLAIN_WORDS[name]
    plain = {"A person's record": words.record, "What is seen": words.seen, "What could go wrong": words.risk}
    lines = [f"{name}: {choice.what}", f"When to use: {choice.when}", "", "In plain words"]
    for title, told in plain.items():
        lines += textwrap.wrap(f"{title}: {told}", 88, initial_indent="  ", subsequent_indent="    ")
    settings = (inspect.getdoc(kind) or "").partition("Args:")[2].strip("\n")
    if settings:
        lines += ["", "Settings", *textwrap.dedent(settings).splitlines()]
    return [*lines, "", who_saw_what_text(kind.headings())]
