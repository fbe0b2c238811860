"""The command `tacit`."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated

import typer

from tacit.cli.lazy import LazyCommand, LazyGroup, import_late, list_commands
from tacit.errors import TacitError, UserError
from tacit.visible import shown

import_late("scipy.stats", "pandas")

# Each command, with the first line of its own docstring: tests compare them.
COMMANDS = {
    "demo": LazyCommand(
        "local.demo", "demo", "Let three simulated hospitals learn together, exactly and privately, and compare."
    ),
    "check": LazyCommand(
        "local.check",
        "check",
        "Compare your own file with a study: line, column and value of everything that does not fit.",
    ),
    "fit": LazyCommand("local.fit", "fit", "Fit a study's model from the parties' files."),
    "predict": LazyCommand(
        "local.predict", "predict", "Predict the records of a file: the likeliest class, and the chance of each class."
    ),
    "methods": LazyCommand(
        "local.methods",
        "methods",
        "List the methods in two lines each: what it is and when to use it; with a name, all about one.",
    ),
    "plan": LazyCommand(
        "local.plan", "plan", "Tell what a study would spend and reveal, and forecast its run; reads no party's data."
    ),
    "compare": LazyCommand(
        "local.compare",
        "compare_command",
        "Compare methods on one study, against epsilon, repeated: accuracy, AUC, loss, calibration, interval widths.",
    ),
    "audit": LazyCommand(
        "local.audit",
        "audit_command",
        "Run a method many times on worst-case neighbours and bound its epsilon from below, with confidence 99.9 %.",
    ),
    "reproduce": LazyCommand(
        "local.reproduce", "reproduce", "Make the documents' tables and figures again, and judge their claims."
    ),
    "practice": LazyCommand(
        "network.practice",
        "practice",
        "Start a whole federation on this machine to learn on: server, center, three hospitals with data, a study.",
    ),
    "export": LazyCommand(
        "local.export", "export", "Write a model for other programs: ONNX, or its coefficients as CSV."
    ),
    "run": LazyCommand("network.run", "run", "Run a study between the members of a federation."),
    "doctor": LazyCommand(
        "network.doctor",
        "doctor",
        "Check connection, clock, certificates, permissions, data source, schema and disk, and say what to do.",
    ),
    "study": LazyCommand("local.study", "app", "Write study files."),
    "data": LazyCommand("local.data", "app", "Public data sets, by name."),
    "coordinator": LazyCommand("network.coordinator", "app", "Run a federation: server, members, studies."),
    "party": LazyCommand("network.party", "app", "Take part in a federation with your own data."),
    "center": LazyCommand("network.center", "app", "Run one node of the center."),
    "approver": LazyCommand("network.approver", "app", "Approve studies: sign with a key of your own."),
}


class _Commands(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    name="tacit",
    cls=_Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
list_commands(app, COMMANDS)


def _tell_version(wanted: bool) -> None:
    if wanted:
        print(f"tacit {import_module('tacit').__version__}")
        raise typer.Exit


@app.callback(epilog="`tacit COMMAND --help` has examples; begin with: tacit demo")
def tacit(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Tell the version and exit.")
    ] = False,
) -> None:
    """Learn together, tell nothing: several organisations fit one classifier without showing their data."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit status 0 done, 1 the run failed, 2 the user's input is wrong."""
    try:
        status = app(args=arguments, prog_name="tacit", standalone_mode=False)
        if status == 130:  # what Typer makes of Ctrl-C
            raise KeyboardInterrupt
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
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _say("there is no room left for what is printed or written; make room, or choose another place")
        with suppress(OSError, ValueError):  # or what is left of the output fails once more at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _say(message: str) -> None:
    print(f"tacit: {shown(' '.join(message.split()))}", file=sys.stderr)


if __name__ == "__main__":
    main()
