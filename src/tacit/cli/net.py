"""The commands of a federation between organisations need packages that the others do without."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from tacit.errors import SettingError

_NEEDED = ("nats", "nkeys", "cryptography")
_COMMANDS = ("run", "coordinator", "party", "center", "doctor")


def missing_package(command: str) -> str | None:
    """A package that the command needs and that is not installed; None if there is none."""
    if command not in _COMMANDS:
        return None
    return next((name for name in _NEEDED if find_spec(name) is None), None)


def placeholder(name: str, package: str) -> Callable[[], None]:
    """A command of the same name that says what to install."""

    def command() -> None:
        raise SettingError(f"tacit {name} needs the package {package}; install it with: pip install 'tacit[net]'")

    command.__doc__ = "Needs tacit[net]."
    return command
