"""Every public name has an example, and every example runs and shows what it says."""

from __future__ import annotations

import doctest
from importlib.util import find_spec
from pathlib import Path

import pytest

import tacit

from .conftest import script

NEEDS = {"SecureNewton": "spu", "CuratorAveraging": "phe", "register_module": "torch", "TernaryDescent": "torch"}
SLOW = {"SecureNewton", "CuratorAveraging", "TernaryDescent", "audit", "register_module"}
example = script("method_pages").example


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in tacit.__all__]
)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed; pip install 'tacit[all]'")
    monkeypatch.chdir(tmp_path)
    code = example(getattr(tacit, name).__doc__ or "")
    test = doctest.DocTestParser().get_doctest(code + "\n", {}, name, None, 0)
    assert any(each.want for each in test.examples) or name in ("assign_local_classifier", "register_module"), (
        f"tacit.{name} has no example that shows a result; add one to its docstring"
    )
    said: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=said.append)
    assert test.examples, f"tacit.{name} has no example; add one to its docstring"
    assert runner.failures == 0, "".join(said)


def test_a_name_without_an_example_is_noticed() -> None:
    assert example("What it is.\n\n    Args:\n        x: a number.\n") == ""
    assert example("What it is.\n\n    Example:\n        >>> 1 + 1\n        2\n    ") == ">>> 1 + 1\n2"
