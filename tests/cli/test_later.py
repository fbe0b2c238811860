"""A stand-in for a module costs nothing and is the module as soon as it is asked."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PREPARE = "import sys; from tacit.cli.later import import_later; import_later('scipy.stats');"


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    assert run(PREPARE + "import scipy.stats; print('scipy.stats._distn_infrastructure' in sys.modules)") == "False"


def test_whatever_is_asked_is_the_modules_own() -> None:
    assert run(PREPARE + "import scipy.stats; print(scipy.stats.norm.cdf(0.0))") == "0.5"
    assert run(PREPARE + "from scipy.stats import norm; print(norm.cdf(0.0))") == "0.5"
    assert run(PREPARE + "import scipy.stats.qmc as qmc; print(qmc.Sobol.__name__)") == "Sobol"
    assert run(PREPARE + "import scipy; scipy.stats.norm; import scipy.stats as s; print(type(s).__name__)") == "module"


def test_a_module_that_is_there_stays_and_one_that_is_not_is_missed_when_it_is_asked() -> None:
    assert run("import json;" + PREPARE.replace("scipy.stats", "json") + "print(sys.modules['json'] is json)") == "True"
    missing = PREPARE.replace("scipy.stats", "nothing_of_that_name") + "import nothing_of_that_name as n\n"
    assert run(missing + "try: n.x\nexcept ModuleNotFoundError as error: print(error.name)") == "nothing_of_that_name"


def test_tables_are_read_as_ever() -> None:
    code = PREPARE.replace("scipy.stats", "pandas") + (
        "import duckdb, pandas as pd; print(type(pd).__name__, duckdb.sql('SELECT 1 AS a').df()['a'].sum(),"
        "isinstance(sys.modules['pandas'].DataFrame(), pd.DataFrame))"
    )
    assert run(code) == "_StandIn 1 True"


def test_a_command_loads_no_statistics_before_it_needs_them() -> None:
    code = "import sys, tacit.cli.main, tacit.cli.party, tacit.report, sklearn.base"
    heavy = "('scipy.stats._distn_infrastructure', 'pandas.core.frame', 'sklearn.metrics')"
    assert run(f"{code}; print([name for name in {heavy} if name in sys.modules])") == "[]"
