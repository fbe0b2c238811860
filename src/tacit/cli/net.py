"""The commands of a federation between organisations, where the packages that they need are installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import typer

from tacit.errors import SettingError

_NEEDED = ("nats", "nkeys", "cryptography")
_COMMANDS = ("run", "coordinator", "party", "center", "doctor")


def add_commands(app: typer.Typer) -> None:
    """Add the commands; without their packages, commands of the same names that say what to install."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        for name in _COMMANDS:
            app.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
                _placeholder(name, missing[0])
            )
        return
    from tacit.cli import center, coordinator, doctor, party, run

    app.command("run")(run.run)
    app.add_typer(coordinator.app, name="coordinator")
    app.add_typer(party.app, name="party")
    app.add_typer(center.app, name="center")
    app.command("doctor")(doctor.doctor)


def _placeholder(name: str, package: str) -> Callable[[], None]:
    def command() -> None:
        raise SettingError(f"tacit {name} needs the package {package}; install it with: pip install 'tacit[net]'")

    command.__doc__ = "Needs tacit[net]."
    return command
