"""Write the generated pages of docs/: the methods (from their files) and the command line (from its help).

python docs/build.py            write them
python docs/build.py --check    fail if they are not what is committed
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import api_page
import figures
import method_pages
import typer
from typer.testing import CliRunner

from tacit.cli.main import COMMANDS, app
from tacit.methods import METHODS

DOCS = Path(__file__).parent


def methods_page() -> str:
    """All methods side by side: what each promises, reveals and asks to trust."""
    lines = [
        "# Methods: what each promises and reveals",
        "",
        "Generated from the methods' files by `make docs`. A name leads to the method's own page.",
        "Which one to take: [choose a method](choose-method.md).",
        "",
        "Every method is a classifier in scikit-learn's sense that learns from a `Federation`; see [api.md](api.md).",
        "`coef_` and `intercept_` are over the encoded columns, `schema_.column_names`: a number with bounds is scaled",
        "to [-1, 1], a category is 0 or 1. `summary()` and `table()` are in original units. A federation",
        "made from arrays declares no bounds, so that its encoded columns are the array's own.",
        "",
    ]
    lines += ["| method | privacy | who is trusted | what is revealed |", "|---|---|---|---|"]
    for name, method in METHODS.items():
        told = method.headings()
        lines.append(f"| [`{name}`](methods/{name}.md) | {told['Privacy']} | {told['Trust']} | {told['Revealed']} |")
    return "\n".join(lines) + "\n"


def every_command() -> Iterator[list[str]]:
    """The words of each command: `tacit` itself, the commands, the groups and theirs."""
    yield []
    for name, command in COMMANDS.items():
        yield [name]
        found = command.load()
        if isinstance(found, typer.Typer):
            yield from ([name, str(below.name)] for below in found.registered_commands)
            for group in found.registered_groups:
                assert group.typer_instance is not None
                yield from ([name, str(group.name), str(c.name)] for c in group.typer_instance.registered_commands)


def cli_page() -> str:
    """Every command's help."""
    lines = ["# Command line", "", "Generated from the commands themselves by `make docs`."]
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    for command in every_command():
        told = runner.invoke(app, [*command, "--help"], prog_name="tacit", terminal_width=100)
        if told.exit_code:
            raise RuntimeError(f"tacit {' '.join(command)} --help fails: {told.output}")
        text = "\n".join(line.rstrip() for line in told.stdout.strip().splitlines())
        lines += ["", f"## {' '.join(['tacit', *command])}", "", "```", text, "```"]
    return "\n".join(lines) + "\n"


def every_page() -> dict[str, str]:
    """Every generated page, by its name; of the README, the table of figures."""
    readme = figures.with_figures((DOCS / "../README.md").read_text(encoding="utf-8"))
    one = {"../README.md": readme, "methods.md": methods_page(), "cli.md": cli_page()}
    return one | {"api-reference.md": api_page.page()} | method_pages.pages()


def main(arguments: list[str]) -> int:
    """Write the pages, or check them."""
    stale = []
    for name, text in every_page().items():
        path = DOCS / name
        if "--check" in arguments:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"docs: {', '.join(stale)} are not what the code says; run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
