"""PrivLogit of many columns: blocks bound the curvature, the optimum is the same, and what cannot be had is said."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import Federation, Policy, Pooled, PrivLogit, Schema, Table
from tacit.data.block import Block
from tacit.errors import SettingError, SingularCurvature, TacitError
from tacit.methods.privlogit import block
from tacit.methods.privlogit.block import gram_blocks, is_wide, on_diagonal, spans
from tacit.secure.center.program import BLOCK

from ..conftest import cohort_of

ALLOWED = Policy(not_private=["privlogit", "pooled"])


def parties(X: np.ndarray, y: np.ndarray) -> Federation:
    schema = Schema.of_arrays(X.shape[1], sorted(set(y.tolist())))
    tables = {f"p{i}": Table.from_arrays(X[i::3], y[i::3], schema) for i in range(3)}
    return Federation.from_tables(tables, policy=ALLOWED)


def drawn(n: int, d: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Columns that go together within blocks and across them."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n, 1))
    W = rng.normal(size=(classes, d)) * 1.5 / np.sqrt(d)
    return X, np.argmax(X @ W.T + rng.gumbel(size=(n, classes)), axis=1)


def whole(blocks: np.ndarray) -> np.ndarray:
    made = np.zeros((len(blocks) * BLOCK, len(blocks) * BLOCK))
    for i, one in enumerate(blocks):
        made[i * BLOCK : (i + 1) * BLOCK, i * BLOCK : (i + 1) * BLOCK] = one
    return made


@given(
    seed=st.integers(0, 10_000),
    d=st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 40]),
    rank=st.integers(1, 5),
)
@settings(max_examples=12, deadline=None)
def test_so_many_times_the_blocks_bound_the_whole(seed: int, d: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, rank)) @ rng.normal(size=(rank, d))  # all columns go together
    y = np.zeros(20, dtype=np.int64)
    blocks = gram_blocks([Block(X[:7], y[:7]), Block(X[7:], y[7:])], d=d, width=d + 1)
    Z = np.column_stack([X, np.ones(20)])
    bound = len(blocks) * whole(blocks)[: d + 1, : d + 1]
    assert np.linalg.eigvalsh(bound - Z.T @ Z)[0] >= -1e-9 * np.trace(bound)
    for span, one in zip(spans(d + 1), blocks, strict=True):
        np.testing.assert_allclose(one[: span.stop - span.start, : span.stop - span.start], Z[:, span].T @ Z[:, span])


def test_the_rule_is_public_and_a_diagonal_is_filled_up() -> None:
    assert [is_wide(width) for width in (1000, 1001)] == [False, True]
    filled = whole(on_diagonal(np.arange(1.0, BLOCK + 3), 7.0))
    np.testing.assert_array_equal(np.diag(filled), [*np.arange(1.0, BLOCK + 3), *[7.0] * (BLOCK - 2)])


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks from 100 columns on."""
    monkeypatch.setattr(block, "WIDEST", 100)


@pytest.mark.parametrize("secure", ["sums", "center"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_wide_fit_is_the_pooled_fit_and_says_how(narrow: None, secure: str, classes: int) -> None:
    federation = parties(*drawn(3000, 280, classes))
    model = PrivLogit(l2=2.0, secure=secure).fit(federation)  # type: ignore[arg-type]
    pooled = Pooled(l2=2.0).fit(federation)
    centred = pooled.coef_ - (pooled.coef_.mean(axis=0) if classes > 2 else 0)
    np.testing.assert_allclose(model.coef_, centred, atol=1e-6 * np.abs(centred).max())
    assert any("2 times its blocks of 256 columns" in notice for notice in model.facts_.notices)
    assert len(model.iterates_) < 80


def test_the_bound_keeps_its_proof_with_every_unit(narrow: None) -> None:
    """No eigenvalue of what a run inverts exceeds 1: the largest block's trace bounds it."""
    plan = PrivLogit(l2=0.5).plan(cohort_of(60, 30, d=300))
    scaling = plan.scaling(None)
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(90, 300)) / np.sqrt(300)  # rows of norm 1, the most
    y = np.zeros(90, dtype=np.int64)
    gram = gram_blocks([Block(X / scaling.unit, y)], d=300, width=301)
    mean = (plan.ceiling * gram + on_diagonal(scaling.penalty, plan.ceiling * 90)) / 90
    assert np.linalg.eigvalsh(whole(mean))[-1] <= 2.0**scaling.block_bits
    assert scaling.block_bits <= scaling.trace_bits


def test_local_products_of_many_columns_are_refused_before_anything_is_asked(narrow: None) -> None:
    federation = parties(*drawn(400, 120))
    with pytest.raises(SettingError, match=r'Choose protocol = "hessian"'):
        PrivLogit(l2=1.0, protocol="local").fit(federation)


@pytest.mark.parametrize("make", [lambda X: np.zeros(len(X)), lambda X: X[:, 0]])
def test_a_column_that_never_changes_or_repeats_another_in_its_block_is_an_error_without_a_penalty(
    narrow: None, make: Callable[[np.ndarray], np.ndarray]
) -> None:
    X, y = drawn(2000, 110)
    X[:, 1] = make(X)
    with pytest.raises(TacitError, match="drop a feature") as failure:
        PrivLogit(secure="sums").fit(parties(X, y))
    assert not isinstance(failure.value, SingularCurvature)  # that would name the columns


def test_standard_errors_of_some_hundred_columns_are_told_with_sums_too() -> None:
    """The curvature and the gradient that are opened together once were too many numbers for the nodes to check."""
    federation = parties(*drawn(1500, 300))
    model, pooled = PrivLogit(l2=1.0, secure="sums").fit(federation), Pooled(l2=1.0).fit(federation)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-9)
    np.testing.assert_allclose(model.table()["std_err"], pooled.table()["std_err"], rtol=1e-5)
