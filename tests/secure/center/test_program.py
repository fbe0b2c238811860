"""Every program gives what numpy gives, opens what it declares and nothing else, and is compiled once."""

from __future__ import annotations

import jax
import jax.experimental
import numpy as np
import pytest

from tacit import wire
from tacit.errors import CenterError, SettingError
from tacit.rand import Rng
from tacit.record import encode_record
from tacit.secure.center.message import Compute, Keep
from tacit.secure.center.process import ProcessCenter
from tacit.secure.center.program import (
    BLOCK,
    PROGRAMS,
    WHOLE,
    contrasts_digest,
    find_program,
    inversion_steps,
    public_value,
)

from .conftest import curvature, keep, newton, seal_all


@pytest.fixture
def run() -> str:
    return Rng.system().bytes(8).hex()


@pytest.mark.parametrize("condition", [1.5, 1e2, 1e4, 2.0**20])
def test_the_steps_take_every_eigenvalue_to_one_and_none_too_far(condition: float) -> None:
    eigenvalues = np.geomspace(1 / condition, 1, 10_000)
    e = eigenvalues  # of A X, at X = I
    for b, c in inversion_steps(condition):
        e = e * (b - c * e)
        assert np.all(e > 0)
        assert np.all(e < 1.5)
    np.testing.assert_allclose(e, 1, atol=1e-11)


def test_fourteen_steps_do_for_a_million() -> None:
    assert len(inversion_steps(2.0**20)) == 14


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
def test_the_inverse_is_as_accurate_as_forty_bits_allow(computing: ProcessCenter, run: str, condition: float) -> None:
    A = curvature(20, condition)
    keep(computing, run, curvature=A, gradient=np.eye(20))
    assert computing.compute(run, "invert") == {"residual_ok": 1}
    X = computing.compute(run, "step")["step"]
    # A itself is rounded to 2**-40: an error of condition * 2**-41 * d is what the input already has.
    expected = np.linalg.inv(A)
    assert np.linalg.norm(X - expected) < 1e-11 * condition * np.linalg.norm(expected)


def test_blocks_are_inverted_each_by_itself_and_multiplied_with_their_own_part(
    computing: ProcessCenter, run: str
) -> None:
    k = BLOCK + 44
    blocks = np.stack([curvature(BLOCK, 50, seed=seed) for seed in (1, 2)])
    g = np.random.default_rng(0).normal(size=(k, 2))
    keep(computing, run, blocks=blocks, gradient=g)
    assert computing.compute(run, "invert_blocks", tolerance=1e-5, condition_bits=12) == {"residual_ok": 1}
    step = computing.compute(run, "step_blocks", scale=0.5)["step"]
    filled = np.zeros((2 * BLOCK, 2))
    filled[:k] = 0.5 * g
    expected = np.concatenate([np.linalg.solve(A, part) for A, part in zip(blocks, np.split(filled, 2), strict=True)])
    np.testing.assert_allclose(step, expected[:k], atol=1e-7)


@pytest.mark.parametrize("shape", [(2 * BLOCK, BLOCK), (1, 2 * BLOCK, 2 * BLOCK), (4, BLOCK // 2, BLOCK // 2)])
def test_blocks_have_one_shape(computing: ProcessCenter, run: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(CenterError, match="no program reads 'blocks' in the shape"):
        keep(computing, run, blocks=np.zeros(shape))


def test_a_gradient_of_other_features_is_not_multiplied_with_blocks(computing: ProcessCenter, run: str) -> None:
    keep(computing, run, blocks=0.5 * np.eye(BLOCK)[None], gradient=np.ones(BLOCK + 1))
    computing.compute(run, "invert_blocks")
    with pytest.raises(CenterError, match="not of the blocks' features"):
        computing.compute(run, "step_blocks")


@pytest.mark.parametrize("condition", [1e2, 1e4])
def test_a_large_matrix_is_inverted_by_halves(computing: ProcessCenter, run: str, condition: float) -> None:
    d = WHOLE + 13
    A = curvature(d, condition)
    keep(computing, run, curvature=A, gradient=np.eye(d))
    assert computing.compute(run, "invert") == {"residual_ok": 1}
    X, expected = computing.compute(run, "step")["step"], np.linalg.inv(A)
    assert np.linalg.norm(X - expected) < 1e-10 * condition * np.linalg.norm(expected)


@pytest.mark.parametrize(("d", "bits"), [(WHOLE + 1, 12), (WHOLE + 1, 4), (4 * WHOLE + 3, 6)])
def test_halves_never_exceed_the_inverse(d: int, bits: int) -> None:
    """Also where steps end early, A X has eigenvalues in (0, 1], from which further steps lead to the inverse."""
    A = curvature(d, 2.0**10)
    invert, refine = PROGRAMS["invert"].function, PROGRAMS["refine"].function
    assert invert is not None
    assert refine is not None
    with jax.experimental.enable_x64():
        X, _, settled = invert(A, tolerance=1e-5, condition_bits=bits)
        eigenvalues = np.linalg.eigvals(A @ np.asarray(X)).real
        assert eigenvalues.min() > 0
        assert eigenvalues.max() < 1 + 1e-6
        assert bool(settled) == (bits >= 10)
        assert refine(A, X, tolerance=1e-5, condition_bits=10)[2] == 1


def test_a_singular_matrix_has_no_inverse_however_it_is_rounded(computing: ProcessCenter, run: str) -> None:
    """What rounding leaves of a zero eigenvalue may be positive, and 33 steps would invert it."""
    A = np.diag([0.3, 0.2, 2.0**-40])
    keep(computing, run, curvature=A)
    opened = computing.compute(run, "invert", condition_bits=12)
    for _ in range(3):
        opened = computing.compute(run, "refine", condition_bits=8)
        assert opened["residual_ok"] == 0


def test_a_step_of_one_or_of_several_columns(computing: ProcessCenter, run: str) -> None:
    A, rng = curvature(20, 50), np.random.default_rng(3)
    g, G = rng.normal(size=20), rng.normal(size=(20, 3))
    keep(computing, run, curvature=A, gradient=g)
    opened = newton(computing, run)
    assert opened["residual_ok"] == 1
    np.testing.assert_allclose(opened["step"], np.linalg.solve(A, g), atol=1e-7)
    keep(computing, run, gradient=G)
    np.testing.assert_allclose(computing.compute(run, "step")["step"], np.linalg.solve(A, G), atol=1e-7)


@pytest.mark.parametrize("scale_bits", [0, 8, 17, 20])
def test_a_public_scale_brings_a_gradient_of_sixty_bits_down_to_size(
    computing: ProcessCenter, run: str, scale_bits: int
) -> None:
    """Kept with 60 fraction bits, hence 2^20 times as large, and multiplied by what public numbers allow."""
    A, g = curvature(20, 50), np.random.default_rng(3).uniform(-1, 1, size=20) * 2.0 ** (scale_bits - 20)
    keep(computing, run, curvature=A, gradient=g * 2.0**20)
    assert computing.compute(run, "invert") == {"residual_ok": 1}
    opened = computing.compute(run, "step", scale=2.0**-scale_bits)["step"]
    np.testing.assert_allclose(opened * 2.0 ** (scale_bits - 20), np.linalg.solve(A, g), atol=1e-8 * np.abs(g).max())


def test_refining_the_inverse_of_a_bound(computing: ProcessCenter, run: str) -> None:
    bound, factor = curvature(20, 1e4), np.random.default_rng(6).normal(size=(20, 20))
    root = np.linalg.cholesky(bound)
    A = root @ (0.1 * np.eye(20) + 0.9 * factor @ factor.T / np.linalg.norm(factor @ factor.T, 2)) @ root.T
    keep(computing, run, curvature=bound)
    computing.compute(run, "invert")
    keep(computing, run, curvature=A, gradient=np.eye(20))
    assert computing.compute(run, "refine", condition_bits=4) == {"residual_ok": 1}
    X = computing.compute(run, "step")["step"]
    assert np.linalg.norm(X @ A - np.eye(20)) < 1e-4


def test_refining_goes_on_where_the_first_steps_ended(computing: ProcessCenter, run: str) -> None:
    A = curvature(20, 2.0**11)
    keep(computing, run, curvature=A, gradient=np.eye(20))
    request = Compute(run=run, program="invert", public={"condition_bits": 5})
    computing.exchange([encode_record(request)] * 3)
    assert computing.compute(run, "refine", condition_bits=8) == {"residual_ok": 1}
    X = computing.compute(run, "step")["step"]
    assert np.linalg.norm(X @ A - np.eye(20)) < 1e-6


def test_variances_open_the_diagonal_alone(computing: ProcessCenter, run: str) -> None:
    A, C = curvature(20, 1e3), np.random.default_rng(4).normal(size=(7, 20))
    keep(computing, run, contrasts_digest({"contrast": C}), curvature=A)
    computing.compute(run, "invert")
    with pytest.raises(CenterError, match="no other contrasts than those that the parties declared"):
        computing.compute(run, "variances", contrast=np.eye(20))
    opened = computing.compute(run, "variances", contrast=C)
    assert list(opened) == ["diagonal"]
    np.testing.assert_allclose(opened["diagonal"], np.diag(C @ np.linalg.inv(A) @ C.T), rtol=1e-7)
    keep(computing, run, contrasts_digest({}), curvature=A)
    computing.compute(run, "invert")
    np.testing.assert_allclose(computing.compute(run, "variances")["diagonal"], np.diag(np.linalg.inv(A)), rtol=1e-7)


def test_a_singular_matrix_is_noticed_and_its_columns_are_named(computing: ProcessCenter, run: str) -> None:
    Z = np.random.default_rng(5).normal(size=(200, 20))
    Z[:, 7] = Z[:, 2] - 0.5 * Z[:, 11]
    A = Z.T @ Z
    A /= np.linalg.norm(A, 2)
    keep(computing, run, curvature=A, gradient=np.zeros(20))
    assert newton(computing, run) == {"residual_ok": 0}  # and no step
    dependent = computing.compute(run, "diagnose")["dependent"]
    assert np.flatnonzero(dependent).tolist() == [2, 7, 11]


def test_a_regular_matrix_has_no_dependent_columns(computing: ProcessCenter, run: str) -> None:
    keep(computing, run, curvature=curvature(20, 1e3))
    np.testing.assert_array_equal(computing.compute(run, "diagnose")["dependent"], np.zeros(20))


@pytest.mark.parametrize(
    ("likelihood", "accepted", "better"),
    [(1.0, 2.0, 0), (2.0, 1.0, 1), (1.5, 1.5, 1), (1.5 - 2**-40, 1.5, 0), (-7e6, 7e6, 0), (7e6, -7e6, 1)],
)
def test_comparison_is_exact(
    computing: ProcessCenter, run: str, likelihood: float, accepted: float, better: int
) -> None:
    keep(computing, run, likelihood=accepted)
    assert computing.compute(run, "accept") == {}
    keep(computing, run, likelihood=likelihood)
    assert computing.compute(run, "compare") == {"better": better}


def test_comparison_with_a_tolerance(computing: ProcessCenter, run: str) -> None:
    keep(computing, run, likelihood=0.5)
    computing.compute(run, "accept")
    for likelihood, better in ((0.4375, 1), (0.4375 - 2**-40, 0)):
        keep(computing, run, likelihood=likelihood)
        assert computing.compute(run, "compare", tolerance=0.0625) == {"better": better}


def test_a_point_that_only_some_nodes_accept_is_compared_with_none(computing: ProcessCenter, run: str) -> None:
    keep(computing, run, likelihood=0.25)
    computing.compute(run, "accept")
    keep(computing, run, likelihood=0.5)
    accept, status = ({"ask": "compute", "run": run, "program": "accept", "public": {}}, {"ask": "status"})
    computing.exchange([wire.encode(accept), wire.encode(status), wire.encode(status)])
    with pytest.raises(CenterError, match="the nodes were asked different things"):
        computing.compute(run, "compare")


def test_the_nodes_return_what_the_program_declares_and_nothing_else(computing: ProcessCenter, run: str) -> None:
    A = curvature(20, 50)
    values = {"curvature": A, "blocks": 0.5 * np.eye(BLOCK)[None], "gradient": np.ones(20), "likelihood": 0.5}
    for name, value in values.items():
        envelopes = seal_all(computing, name, value, f"{run} {name}", contrasts=contrasts_digest({}))
        requests = [
            Keep(
                run=run, name=name, context=f"{run} {name}", shape=np.shape(value), sum_group=None, boxes={},
                envelopes={party: sealed[i] for party, sealed in envelopes.items()},
            )
            for i in range(3)
        ]  # fmt: skip
        replies = computing.exchange([encode_record(request) for request in requests])
        assert [wire.decode(reply) for reply in replies] == [{"done": {}}] * 3
    for program in sorted(PROGRAMS.values(), key=lambda program: not program.name.startswith("invert")):
        if program.name == "compare":
            computing.compute(run, "accept")
        request = {"ask": "compute", "run": run, "program": program.name, "public": {}}
        for reply in map(wire.decode, computing.exchange([wire.encode(request)] * 3)):
            assert isinstance(reply, dict)
            assert list(reply) == ["done"]
            assert list(reply["done"]) == ["opened"]
            assert set(reply["done"]["opened"]) == set(program.opens)


def test_shares_of_a_result_hide_it_from_one_node(computing: ProcessCenter, run: str) -> None:
    """One node's shares of a zero look like random words: of 40 results no word repeats."""
    keep(computing, run, inverse=np.zeros((1, 30)), gradient=np.ones(30))
    request = wire.encode({"ask": "compute", "run": run, "program": "step", "public": {}})
    words = []
    for _ in range(40):
        reply = wire.decode(computing.exchange([request] * 3)[0])
        assert isinstance(reply, dict)
        words.append(reply["done"]["opened"]["step"]["words"][:, 0, 0])
    seen = np.concatenate(words)
    assert len(np.unique(seen)) == len(seen)
    assert 15 < np.mean([bin(int(word)).count("1") for word in seen]) < 49


def test_a_program_is_compiled_once_for_all_runs(computing: ProcessCenter, run: str) -> None:
    def compiled() -> list[wire.Value]:
        replies = map(wire.decode, computing.exchange([wire.encode({"ask": "status"})] * 3))
        return [reply["done"]["n_compiled"] for reply in replies if isinstance(reply, dict)]

    counts = []
    for number in range(3):
        keep(computing, f"{run}{number}", inverse=np.ones((1, 13)), gradient=np.ones(13))
        computing.compute(f"{run}{number}", "step")
        counts.append(compiled())
    assert counts[0] == counts[1] == counts[2]
    assert len(set(map(str, counts[0]))) == 1


def test_the_same_values_are_not_asked_with_other_arguments(computing: ProcessCenter, run: str) -> None:
    keep(computing, run, likelihood=0.5)
    computing.compute(run, "accept")
    for _ in range(2):
        assert computing.compute(run, "compare", tolerance=0.25) == {"better": 1}
    with pytest.raises(CenterError, match="'compare' ran before on the same values with other arguments"):
        computing.compute(run, "compare", tolerance=0.125)


def test_a_program_without_its_inputs_does_not_run(computing: ProcessCenter, run: str) -> None:
    with pytest.raises(CenterError, match="'step' reads inverse, gradient, which the run does not keep"):
        computing.compute(run, "step")
    keep(computing, run, inverse=np.ones((1, 13)), gradient=np.ones(13))
    with pytest.raises(CenterError, match="reads inverse, gradient, which the run does not keep"):
        computing.compute("another run", "step")
    computing.forget(run)
    with pytest.raises(CenterError, match="reads inverse, gradient, which the run does not keep"):
        computing.compute(run, "step")


def test_what_is_not_in_the_table_is_refused(computing: ProcessCenter, run: str) -> None:
    with pytest.raises(CenterError, match="no program 'open everything'; it has invert, refine"):
        computing.compute(run, "open everything")
    with pytest.raises(CenterError, match="no program 'x'"):
        find_program("x")
    keep(computing, run, inverse=np.ones((1, 13)), gradient=np.ones(13), curvature=np.eye(3), likelihood=1.0)
    with pytest.raises(CenterError, match="'step' has no public argument length"):
        computing.compute(run, "step", length=2.0)
    with pytest.raises(CenterError, match=r"condition_bits of program 'invert' must be one of 1, ..., 24"):
        computing.compute(run, "invert", condition_bits=60)
    with pytest.raises(CenterError, match="tolerance has an entry of size inf"):
        computing.compute(run, "invert", tolerance=float("nan"))
    with pytest.raises(CenterError, match="threshold must be a number"):
        computing.compute(run, "diagnose", threshold="high")


def test_shapes_that_do_not_fit_are_refused_and_the_center_goes_on(computing: ProcessCenter, run: str) -> None:
    keep(computing, run, inverse=np.ones((1, 13)), gradient=np.ones(7))
    with pytest.raises(CenterError, match="'step' reads a gradient that is not of the inverse's features"):
        computing.compute(run, "step")
    keep(computing, run, gradient=np.ones(13))
    assert computing.compute(run, "step") == {"step": pytest.approx(np.array([13]))}


def test_a_result_that_leaves_the_range_is_noticed(computing: ProcessCenter, run: str) -> None:
    keep(computing, run, inverse=np.full((1, 13), 2.0**20), gradient=np.full(13, 2.0**20))
    with pytest.raises(CenterError, match=r"not within 2\*\*23"):
        computing.compute(run, "step")


def test_shares_that_do_not_fit_each_other_are_noticed_before_anything_runs(computing: ProcessCenter, run: str) -> None:
    keep(computing, run, inverse=np.ones((1, 13)))
    one, two = (seal_all(computing, "gradient", np.ones(13), run) for _ in range(2))
    mixed = {party: [one[party][0], two[party][1], one[party][2]] for party in one}
    computing.keep(run, "gradient", run, mixed, (13,))
    with pytest.raises(CenterError, match="shares do not fit each other"):
        computing.compute(run, "step")


def test_public_arguments_are_finite_numbers_of_modest_size() -> None:
    np.testing.assert_array_equal(public_value("tolerance", 3), 3.0)
    np.testing.assert_array_equal(public_value("contrast", np.eye(2)), np.eye(2))
    for value in (np.inf, np.nan, 1e9, np.array([0.0, -(2.0**22)])):
        with pytest.raises(SettingError, match="tolerance has an entry of size"):
            public_value("tolerance", value)
    with pytest.raises(SettingError, match="tolerance must be a number"):
        public_value("tolerance", "x")
