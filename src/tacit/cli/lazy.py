"""Imports that wait until they are needed: large packages, and the commands themselves.

A command imports what it needs when it runs, so help and completion start with next to nothing. Two packages are
imported by others that rarely use them: scikit-learn imports `scipy.stats`, and the data layer pandas. Together they
take most of a second, and each process of a federation would pay it. The standard library's `LazyLoader` defers them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader, find_spec
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from tacit.errors import SettingError

_NETWORK_PACKAGES = ("nats", "nkeys", "cryptography")


@dataclass(frozen=True)
class LazyCommand:
    """Where a command is, and the first line of its help: all that a list of commands shows."""

    module: str  # below tacit.cli
    attribute: str  # a function, or the Typer of a group
    help: str

    def missing_package(self) -> str | None:
        """A package that the command needs and that is not installed; None if there is none."""
        if not self.module.startswith("network."):
            return None
        return next((name for name in _NETWORK_PACKAGES if find_spec(name) is None), None)

    def load(self) -> Any:
        """The function or the Typer; imports the command's module."""
        return getattr(import_module(f"tacit.cli.{self.module}"), self.attribute)


class HelpfulGroup(TyperGroup):
    """A group of commands that shows its help when it is called without any; that is no error."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Ask for help where nothing is asked for."""
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])


class LazyGroup(HelpfulGroup):
    """A group that lists its commands without importing them, and imports the one that is called."""

    table: dict[str, LazyCommand]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called, from its module."""
        name, listed, rest = super().resolve_command(ctx, args)
        found = self.table.get(name or "")
        if found is None or found.missing_package() is not None:
            return name, listed, rest
        return name, _command(name or "", found), rest


def list_commands(app: typer.Typer, table: dict[str, LazyCommand]) -> None:
    """Let the app know the commands by name and first line; its group is a `LazyGroup` of the same table."""
    for name, command in table.items():
        package = command.missing_package()
        if package is None:
            app.command(name, help=command.help)(_nothing)
        else:
            anything = {"allow_extra_args": True, "ignore_unknown_options": True}
            app.command(name, context_settings=anything, help="Needs tacit[net].")(_install(name, package))


def _nothing() -> None:
    """Stands for a command in a list of them."""


def _install(name: str, package: str) -> Callable[[], None]:
    def command() -> None:
        raise SettingError(f"tacit {name} needs the package {package}; install it with: pip install 'tacit[net]'")

    return command


def _command(name: str, lazy: LazyCommand) -> Any:
    holder = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    found = lazy.load()
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name, cls=HelpfulGroup)
    else:
        holder.command(name)(found)
    return get_group(holder).commands[name]


def import_late(*names: str) -> None:
    """Let `import name` cost nothing until an attribute of the module is asked for.

    Daemons work in one thread: before Python 3.11.9, two threads that are the first to ask could meet half a module.

    Guarantees:
        Whatever is asked of the module is what the module itself gives; one that was imported already stays.
    """
    sys.meta_path.insert(0, _LateFinder(names))


class _LateFinder(MetaPathFinder):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if fullname in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = _LateLoader(spec.loader)
        return spec


class _LateLoader(LazyLoader):
    """A `LazyLoader` whose modules may be imported many times over: Python reads `__spec__` at each import."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        lazy: type[ModuleType] = type(module)

        class Unasked(lazy):  # type: ignore[valid-type, misc]
            def __getattribute__(self, name: str) -> Any:
                if name == "__spec__":
                    return object.__getattribute__(self, name)
                object.__setattr__(self, "__class__", lazy)
                return getattr(self, name)

        module.__class__ = Unasked
