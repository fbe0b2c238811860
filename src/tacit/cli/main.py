"""The command `tacit`."""

from __future__ import annotations

import sys

import typer

from tacit.cli import audit, compare, data, demo, fit, methods, net, plan, reproduce, study
from tacit.errors import TacitError, UserError

app = typer.Typer(
    name="tacit",
    help="Learn together, tell nothing: several organisations fit one classifier without showing their data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("fit")(fit.fit)
app.command("methods")(methods.methods)
app.command("plan")(plan.plan)
app.command("compare")(compare.compare_command)
app.command("audit")(audit.audit_command)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(study.app, name="study")
app.add_typer(data.app, name="data")
net.add_commands(app)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit status 0 done, 1 the run failed, 2 the user's input is wrong."""
    try:
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
