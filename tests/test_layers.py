"""Imports point one way; methods and protocols open with their headings; the public names are the public names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tacit
from tacit.methods import METHODS
from tacit.methods.method import parse_headings
from tacit.report.facts import HEADINGS

ROOT = Path(tacit.__file__).parent

# From the top to the bottom: a module may import from its own layer and from those below.
LAYERS = (
    "cli", "daemon", "reproduce", "studies", "methods", "report", "federation", "secure", "privacy", "models", "data",
    "wire", "rand", "errors",
)  # fmt: skip


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} has a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "tacit"}


MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downward(path: Path) -> None:
    own = layer("tacit." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
    for name in imports(path):
        assert LAYERS.index(layer(name)) >= LAYERS.index(own), f"{own} imports {name}, which is above it"


def test_every_folder_is_a_layer() -> None:
    found = {path.relative_to(ROOT).with_suffix("").parts[0] for path in MODULES}
    assert found == set(LAYERS) - {"reproduce"} | ({"reproduce"} & found)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_opens_with_the_eight_headings_in_order(name: str) -> None:
    headings = METHODS[name].headings()
    assert tuple(headings) == HEADINGS
    assert all(len(text) > 10 for text in headings.values())


def test_the_center_opens_with_the_eight_headings() -> None:
    from tacit.secure import center

    assert tuple(parse_headings(center.__doc__ or "")) == HEADINGS


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(tacit.__all__) == tacit.__all__
    assert all(hasattr(tacit, name) for name in tacit.__all__)
    assert {cls.__name__ for cls in METHODS.values()} <= set(tacit.__all__)


def test_the_methods_names_are_their_class_names_in_kebab_case() -> None:
    for name, method in METHODS.items():
        kebab = re.sub(r"(?<!^)(?=[A-Z])", "-", method.__name__).lower()
        assert name in (kebab, kebab.replace("-", ""))


@pytest.mark.parametrize("call", ["np.random.", "random.random", "import random", "import pickle", "import secrets"])
def test_chance_comes_from_one_module_and_nothing_is_unpickled(call: str) -> None:
    offenders = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if call in path.read_text(encoding="utf-8") and path.name != "rand.py"
    ]
    assert not offenders


def test_only_the_guard_seals_and_only_the_ledger_spends() -> None:
    """The security review by grep: where values leave, and where budget is spent."""
    callers = {
        word: {str(path.relative_to(ROOT)) for path in MODULES if word in path.read_text(encoding="utf-8")}
        for word in (".spend(", "seal(flat", "SealedBox(")
    }
    assert callers == {
        ".spend(": {"federation/guard.py"},
        "seal(flat": {"federation/guard.py"},
        "SealedBox(": {"secure/envelope.py"},
    }
