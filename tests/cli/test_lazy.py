"""What waits until it is asked for: large packages, and the modules of commands."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "numpy", "scipy", "sklearn", "pandas", "matplotlib", "duckdb", "torch", "nats", "cryptography", "asyncio",
    "rich.table", "rich.progress", "tacit.methods", "tacit.data", "tacit.studies", "tacit.report",
)  # fmt: skip


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PREPARE = "import sys; from tacit.cli.lazy import import_late; import_late('scipy.stats', 'pandas');"


@pytest.mark.parametrize(
    ("name", "inside"), [("scipy.stats", "scipy.stats._distn_infrastructure"), ("pandas", "pandas.core.frame")]
)
def test_nothing_is_loaded_before_it_is_asked_for_however_often_it_is_imported(name: str, inside: str) -> None:
    twice = f"import {name}; import {name} as again; import importlib; importlib.import_module('{name}');"
    assert run(PREPARE + twice + f"print('{name}' in sys.modules, '{inside}' in sys.modules)") == "True False"
    assert run(PREPARE + twice + f"again.__doc__; print('{inside}' in sys.modules)") == "True"


def test_whatever_is_asked_is_the_modules_own() -> None:
    assert run(PREPARE + "import scipy.stats; print(scipy.stats.norm.cdf(0.0))") == "0.5"
    assert run(PREPARE + "from scipy.stats import norm; print(norm.cdf(0.0))") == "0.5"
    assert run(PREPARE + "import scipy.stats.qmc as qmc; print(qmc.Sobol.__name__)") == "Sobol"
    assert run(PREPARE + "import scipy; scipy.stats.norm; import scipy.stats as s; print(type(s).__name__)") == "module"


def test_a_module_that_is_there_stays_and_one_that_is_not_is_missed() -> None:
    assert run("import json;" + PREPARE.replace("pandas", "json") + "print(sys.modules['json'] is json)") == "True"
    missing = PREPARE.replace("pandas", "nothing_of_that_name") + "\ntry: import nothing_of_that_name"
    assert run(missing + "\nexcept ModuleNotFoundError as error: print(error.name)") == "nothing_of_that_name"


def test_tables_are_read_as_ever() -> None:
    code = PREPARE + (
        "import duckdb, pandas as pd; print(duckdb.sql('SELECT 1 AS a').df()['a'].sum(),"
        "isinstance(sys.modules['pandas'].DataFrame(), pd.DataFrame), type(pd).__name__)"
    )
    assert run(code) == "1 True module"


def test_joining_loads_no_statistics_and_no_tables() -> None:
    code = "import sys, tacit.cli.main, tacit.daemon.party.settings, tacit.report, sklearn.base"
    heavy = "('scipy.stats._distn_infrastructure', 'pandas.core.frame', 'sklearn.metrics')"
    assert run(f"{code}; print([name for name in {heavy} if name in sys.modules])") == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        "", "--help", "--version", "demo --help", "fit --help", "methods --help", "plan --help", "compare --help",
        "audit --help", "reproduce --help", "run --help", "doctor --help", "study new --help", "data get --help",
        "coordinator --help", "party --help", "party serve --help", "center", "center init --help",
    ],
)  # fmt: skip
def test_help_imports_nothing_that_takes_long(arguments: str) -> None:
    code = f"""
import atexit, sys
from tacit.cli.main import main
atexit.register(lambda: print([name for name in {HEAVY} if name in sys.modules]))
main(sys.argv[1:])
"""
    assert run(code, *arguments.split()).splitlines()[-1] == "[]"
