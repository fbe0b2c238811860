"""The reference of the Python interface: every public name with its signature, its docstring and its example."""

from __future__ import annotations

import inspect
import re

from method_pages import example, plain_text

import tacit

GROUPS = {
    "Data": ("Schema", "Numeric", "Categorical", "Binary", "Target", "Table", "datasets"),
    "Parties": ("Federation", "Policy"),
    "Private methods": (
        "PrivateNewton", "FunctionalMechanism", "NoisyDescent", "ObjectivePerturbation", "Averaging",
        "CuratorAveraging", "Ensemble", "HypothesisTransfer", "TernaryDescent",
    ),
    "Exact methods": ("PrivLogit", "SecureNewton", "Pooled", "Local"),
    "Models": (
        "load", "pretrain", "evaluate_privately", "PrivateEvaluation", "register_local_classifier",
        "assign_local_classifier", "register_module",
    ),
    "Studies": ("Study", "compare", "audit", "fit_in_looks"),
    "Privacy": ("Guarantee", "Budget", "Ledger", "Rng", "TacitError"),
}  # fmt: skip


def page() -> str:
    """The whole page."""
    left = sorted(set(tacit.__all__) - {name for names in GROUPS.values() for name in names})
    parts = [
        "# Python reference",
        "Generated from the docstrings by `make docs`. A test runs every example. What belongs together: "
        "[the Python interface](api.md).",
    ]
    for group, names in {**GROUPS, **({"Others": tuple(left)} if left else {})}.items():
        parts.append(f"## {group}")
        for name in names:
            parts += entry(name)
    return "\n\n".join(parts) + "\n"


def entry(name: str) -> list[str]:
    """What is said of one name."""
    thing = getattr(tacit, name)
    text = inspect.getdoc(thing) or ""
    parts = [f"### {name}", *signature(name, thing)]
    body = re.split(r"^Example:\n|^\S.*:\n\n? +>>>", text, flags=re.MULTILINE)[0].strip()
    for paragraph in re.split(r"\n\n+", body):
        heading, colon, rest = paragraph.partition(":\n")
        if colon and heading in ("Args", "Attributes", "Raises", "Returns", "Guarantees"):
            parts += [f"**{heading}**", listed(rest)]
        elif paragraph.startswith("    "):
            parts.append("```python\n" + inspect.cleandoc(paragraph) + "\n```")
        else:
            parts.append(plain_text(" ".join(paragraph.split())))
    methods = public_methods(thing)
    if methods:
        parts += ["**Methods**", "\n".join(f"- `{each}`: {plain_text(told)}" for each, told in methods)]
    return [*parts, f"```pycon\n{example(thing.__doc__ or '')}\n```"]


def signature(name: str, thing: object) -> list[str]:
    """How it is called, as code."""
    if inspect.ismodule(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return []
    parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    arguments = [re.sub(r": .*?(?= = |$)", "", str(each)).replace(" = ", "=") for each in parameters]
    return [f"```python\ntacit.{name}({', '.join(arguments)})\n```"]


def listed(section: str) -> str:
    """An indented section as a list: an item for each line that is indented least."""
    lines = inspect.cleandoc(section).splitlines()
    items: list[str] = []
    for line in lines:
        if line.startswith(" ") and items:
            items[-1] += " " + line.strip()
        else:
            items.append(line)
    named = [re.match(r"([\w, ]+): (.*)", item) for item in items]
    if all(named):
        return "\n".join(f"- `{found[1]}`: {plain_text(found[2])}" for found in named if found)
    return plain_text(" ".join(items))


def public_methods(thing: object) -> list[tuple[str, str]]:
    """What a class of ours offers besides what estimators share, with the first line on each."""
    if inspect.ismodule(thing):
        return [(name, _first(getattr(thing, name))) for name in ("names", "load", "describe", "export")]
    known = ("Federation", "Table", "RunnableStudy", "Ledger", "Policy", "Rng")
    if not inspect.isclass(thing) or thing.__name__ not in known:
        return []
    members = {name: member for kind in reversed(thing.__mro__[:-1]) for name, member in vars(kind).items()}
    found = [(name, _first(member)) for name, member in members.items() if not name.startswith("_")]
    return [(name, told) for name, told in found if told]


def _first(member: object) -> str:
    target = getattr(member, "__func__", member)
    documented = isinstance(member, staticmethod | classmethod | property) or inspect.isfunction(target)
    return (inspect.getdoc(target) or "").partition("\n")[0] if documented else ""
