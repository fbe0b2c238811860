"""Imports point one way; rooms keep to themselves; methods and protocols open with their headings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import tacit
from tacit.methods import METHODS
from tacit.report.facts import HEADINGS
from tacit.report.heading import parse_headings

ROOT = Path(tacit.__file__).parent

# From the top to the bottom: a module may import from its own layer and from those below.
LAYERS = (
    "cli", "web", "daemon", "reproduce", "studies", "methods", "report", "federation", "secure", "privacy", "models",
    "datasets", "data", "record", "storage", "wire", "rand", "bisection", "visible", "unit", "errors",
)  # fmt: skip

# Which rooms of methods/ a room may use, besides itself and the files beside the rooms.
ROOMS: dict[str, set[str]] = {
    "averaging": set(),
    "baseline": set(),
    "curator": {"averaging"},
    "descent": set(),
    "ensemble": set(),
    "evaluation": set(),
    "functional": set(),
    "newton": {"evaluation"},
    "objective": set(),
    "privlogit": set(),
    "ternary": set(),
    "transfer": set(),
}

MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def module_of(path: Path) -> str:
    return ".".join(("tacit", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


KNOWN = {module_of(path) for path in MODULES} | {"tacit"}


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules of the package that a file imports, within functions too; not those for type checkers alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for inner in block.body
        for node in ast.walk(inner)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "tacit"}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} has a relative import"
            if node.module.split(".")[0] == "tacit":
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {name if name in KNOWN else node.module for name in names}
    return frozenset(found)


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def room(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "methods" and parts[2] in ROOMS else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downward(path: Path) -> None:
    own = layer(module_of(path))
    for name in imports(path) - {"tacit"}:
        assert LAYERS.index(layer(name)) >= LAYERS.index(own), f"{own} imports {name}, which is above it"


def test_every_folder_is_a_layer() -> None:
    assert {path.relative_to(ROOT).with_suffix("").parts[0] for path in MODULES} == set(LAYERS)


def test_no_modules_import_each_other_in_a_circle() -> None:
    edges = {module_of(path): imports(path) for path in MODULES}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way[way.index(name) :], name))
        if name in done:
            return
        for other in sorted(edges.get(name, ())):
            visit(other, (*way, name))
        done.add(name)

    for name in sorted(edges):
        visit(name, ())


def test_rooms_of_methods_use_no_others_but_those_listed() -> None:
    folders = {path.name for path in (ROOT / "methods").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(ROOMS)
    used: dict[str, set[str]] = {name: set() for name in ROOMS}
    for path in MODULES:
        own = room(module_of(path))
        others = {other for name in imports(path) if (other := room(name)) is not None}
        if own is not None:
            used[own] |= others - {own}
        elif layer(module_of(path)) == "methods":
            assert not others, f"{path.name} stands beside the rooms and imports {others}"
    assert used == ROOMS


def test_files_and_functions_are_short_and_methods_has_few_files_beside_the_rooms() -> None:
    assert len(list((ROOT / "methods").glob("*.py"))) <= 10
    long_files = [str(path.relative_to(ROOT)) for path in MODULES if len(path.read_text().splitlines()) > 400]
    assert not long_files
    long_functions = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _n_lines(node) > 40
    ]
    assert not long_functions


def _n_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines the body has, without the signature and the docstring."""
    body = node.body if ast.get_docstring(node) is None else node.body[1:]
    return (node.end_lineno or body[0].lineno) - body[0].lineno + 1 if body else 0


def test_a_class_name_means_one_thing() -> None:
    """`Plan` alone is each room's own."""
    names: Counter[str] = Counter()
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names.update(node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")
    assert {name for name, count in names.items() if count > 1} == {"Plan"}
    for folder in ROOMS:
        plans = [path for path in (ROOT / "methods" / folder).glob("*.py") if "\nclass Plan" in path.read_text()]
        assert len(plans) <= 1, folder


def test_one_check_of_a_table_in_all() -> None:
    checks = [
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == "check" and "table" in [a.arg for a in node.args.args]
    ]
    assert checks == ["methods/cohort.py"]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_opens_with_the_eight_headings_in_order(name: str) -> None:
    headings = METHODS[name].headings()
    assert tuple(headings) == HEADINGS
    assert all(len(text) > 10 for text in headings.values())


def test_the_center_opens_with_the_eight_headings() -> None:
    from tacit.secure.center import center

    assert tuple(parse_headings(center.__doc__ or "")) == HEADINGS


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(tacit.__all__) == tacit.__all__
    assert all(hasattr(tacit, name) for name in tacit.__all__)
    assert {cls.__name__ for cls in METHODS.values()} <= set(tacit.__all__)


def test_the_methods_names_are_their_class_names_in_kebab_case() -> None:
    for name, method in METHODS.items():
        kebab = re.sub(r"(?<!^)(?=[A-Z])", "-", method.__name__).lower()
        assert name == method.name
        assert name in (kebab, kebab.replace("-", ""))


def imported_names(path: Path) -> set[str]:
    """Every name that a file imports, with its module: `tacit.secure.envelope.seal`, `random`, ..."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_chance_comes_from_one_module_and_nothing_is_unpickled() -> None:
    for path in MODULES:
        tops = {name.split(".")[0] for name in imported_names(path)}
        assert not tops & {"pickle", "secrets", "random"} or path == ROOT / "rand.py", path
        assert "np.random." not in path.read_text(encoding="utf-8") or path == ROOT / "rand.py", path


def test_only_the_guard_seals_and_only_the_ledger_spends() -> None:
    """The security review by imports: where values leave, and where budget is spent."""
    seals = {"tacit.secure.envelope.seal", "tacit.secure.envelope.seal_message", "tacit.secure.envelope"}
    leaves = {"tacit.federation.leaving", "tacit.federation.leaving.Leaving"}
    for names, place in ((seals, "federation/leaving.py"), (leaves, "federation/guard.py")):
        assert {str(path.relative_to(ROOT)) for path in MODULES if imported_names(path) & names} == {place}
    callers = {
        word: {str(path.relative_to(ROOT)) for path in MODULES if word in path.read_text(encoding="utf-8")}
        for word in (".spend(", "SealedBox(")
    }
    assert callers == {".spend(": {"federation/guard.py"}, "SealedBox(": {"secure/envelope.py"}}
