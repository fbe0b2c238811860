"""The command `tacit`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module

import typer

from tacit.cli.later import import_later
from tacit.cli.net import missing_package, placeholder
from tacit.errors import TacitError, UserError

import_later("scipy.stats")
import_later("pandas")

# Where each command lives: its module, and the function or the group in it. A module is imported when its command is
# called, or all of them for help: a daemon needs a fraction of what `demo` needs.
_COMMANDS = {
    "demo": ("demo", "demo"),
    "fit": ("fit", "fit"),
    "methods": ("methods", "methods"),
    "plan": ("plan", "plan"),
    "compare": ("compare", "compare_command"),
    "audit": ("audit", "audit_command"),
    "reproduce": ("reproduce", "reproduce"),
    "run": ("run", "run"),
    "doctor": ("doctor", "doctor"),
    "study": ("study", "app"),
    "data": ("data", "app"),
    "coordinator": ("coordinator", "app"),
    "party": ("party", "app"),
    "center": ("center", "app"),
}


def make_app(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    made = typer.Typer(
        name="tacit",
        help="Learn together, tell nothing: several organisations fit one classifier without showing their data.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_tacit)  # with it, a single command is still called by its name
    for name in names:
        module, attribute = _COMMANDS[name]
        if (package := missing_package(name)) is not None:
            anything = {"allow_extra_args": True, "ignore_unknown_options": True}
            made.command(name, context_settings=anything)(placeholder(name, package))
            continue
        found = getattr(import_module(f"tacit.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            made.add_typer(found, name=name)
        else:
            made.command(name)(found)
    return made


def _tacit() -> None:
    """Learn together, tell nothing: several organisations fit one classifier without showing their data."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit status 0 done, 1 the run failed, 2 the user's input is wrong."""
    given = sys.argv[1:] if arguments is None else arguments
    called = given[:1] if given and given[0] in _COMMANDS else _COMMANDS
    try:
        app = make_app(called)
        status = app(args=arguments, prog_name="tacit", standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except (typer.Abort, KeyboardInterrupt):
        _say("stopped; what was written is whole, what was spent stays spent")
        sys.exit(130)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        _say(f"{error.format_message()}{hint}")
        sys.exit(2)
    except UserError as error:
        _say(str(error))
        sys.exit(2)
    except TacitError as error:
        _say(str(error))
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _say(message: str) -> None:
    print(f"tacit: {' '.join(message.split())}", file=sys.stderr)


if __name__ == "__main__":
    main()
