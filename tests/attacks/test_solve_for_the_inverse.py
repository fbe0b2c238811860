"""A coordinator asks for variances of contrasts that it chose, to solve for the inverse of the pooled curvature.

A symmetric inverse of d rows has d (d + 1) / 2 unknowns, and each contrast opens one equation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("jax")

from tacit.errors import CenterError, SettingError
from tacit.federation.group import SumGroup
from tacit.federation.policy import Policy
from tacit.methods.privlogit.method import QUESTIONS, PrivLogit
from tacit.methods.privlogit.statistic import Measure, Point
from tacit.rand import Rng
from tacit.secure.bound import NormBound
from tacit.secure.center.program import PROGRAMS
from tacit.secure.envelope import Label, seal, sum_group_digest, unseal
from tacit.secure.share import Shared
from tacit.wire import Value

from ..secure.center.signed_center import keep_signed
from .organisation import NODE_SEALS, SEAL_KEYS, Organisation, node_of, organisation

Floats = npt.NDArray[np.float64]

D = 3
GROUP = SumGroup.of({"north": 60, "south": 60}, quorum=2)


def solving_contrasts(d: int) -> Floats:
    """d (d + 1) / 2 rows whose variances determine a symmetric matrix: e_i, and e_i + e_j."""
    unit = np.eye(d)
    return np.array([*unit, *(unit[i] + unit[j] for i in range(d) for j in range(i))])


def solved(contrasts: Floats, variances: Floats) -> Floats | None:
    """The symmetric matrix with these variances; None if they leave it open."""
    d = contrasts.shape[1]
    places = [(i, j) for i in range(d) for j in range(i + 1)]
    equations = np.array([[c[i] * c[j] * (1 if i == j else 2) for i, j in places] for c in contrasts])
    if np.linalg.matrix_rank(equations) < len(places):
        return None
    entries = np.linalg.lstsq(equations, variances, rcond=None)[0]
    X = np.zeros((d, d))
    for (i, j), entry in zip(places, entries, strict=True):
        X[i, j] = X[j, i] = entry
    return X


def parties() -> list[Organisation]:
    allowed = Policy(not_private=["privlogit"])
    made = [organisation(name, PrivLogit(), GROUP, policy=allowed) for name in ("north", "south")]
    for one in made:
        one.begin()
    return made


class Plain:
    """An engine that notes which program it is asked to run; the shares themselves are nothing that this looks at."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, Mapping[str, Floats]]] = []

    def agree(self, what: str, shares: Sequence[Shared]) -> bool:
        return True

    def refuse(self) -> None:
        """Nobody waits."""

    def prepare(self, task: Any) -> None:
        """Nothing is compiled."""

    def run(self, task: Any) -> dict[str, Shared]:
        self.opened.append((task.program.name, task.public))
        return dict.fromkeys((*task.program.keeps, *task.program.opens), next(iter(task.inputs.values())))


class Center:
    """Node 0, as the coordinator speaks with it."""

    def __init__(self) -> None:
        engine: Any = Plain()
        self.engine: Plain = engine
        self.nodes = [node_of(index, engine if index == 0 else Plain()) for index in range(3)]
        self.node = self.nodes[0]

    def keep(
        self,
        asked: Sequence[Organisation],
        step: Any,
        values: Any,
        turn: int = 0,
        run: str = "r",
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        """Keep what the parties answer; in the shapes that they state, or in those of the coordinator's choice."""
        answers = {one.guard.name: one.ask(step, values, turn=turn, run=run) for one in asked}
        question = next(iter(answers.values())).question
        for name in next(iter(answers.values())).value:
            parts: dict[str, Any] = {party: answer.value[name] for party, answer in answers.items()}
            envelopes = {party: part["envelopes"] for party, part in parts.items()}
            shape = (shapes or {}).get(name, tuple(next(iter(parts.values()))["shape"]))
            keep_signed(self.nodes, run, name, question, envelopes, shape, ["north", "south"])

    def variances(self, contrast: Floats | None, run: str = "r") -> None:
        public: dict[str, Value] = {} if contrast is None else {"contrast": contrast}
        self.node.compute(run, "variances", public)

    @property
    def n_variances(self) -> int:
        return sum(len(public["contrast"]) for name, public in self.engine.opened if name == "variances")


AT_ZERO = Point(point=np.zeros(D), units=None)


def test_enough_contrasts_would_give_the_inverse_and_those_of_a_table_do_not() -> None:
    A = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 0.7]])
    rows = solving_contrasts(D)
    assert len(rows) == D * (D + 1) // 2
    diagonal = np.asarray(PROGRAMS["variances"].function(np.linalg.inv(A), contrast=rows)[0])
    np.testing.assert_allclose(solved(rows, diagonal), np.linalg.inv(A), rtol=1e-5)
    for left_out in range(len(rows)):
        fewer = np.delete(rows, left_out, axis=0)
        assert solved(fewer, np.delete(diagonal, left_out)) is None
    table = parties()[0].plan.scaling(None).declared_contrast
    assert len(table) == D < len(rows)
    assert solved(table, np.ones(D)) is None


@pytest.mark.parametrize("contrast", [solving_contrasts(D), solving_contrasts(D)[3:], np.ones((1, D)), None])
def test_no_other_contrasts_are_opened_than_the_parties_declared(contrast: Floats | None) -> None:
    center, asked = Center(), parties()
    center.keep(asked, QUESTIONS.curvature, AT_ZERO)
    center.node.compute("r", "invert", {})
    declared = asked[0].plan.scaling(None).declared_contrast
    with pytest.raises(CenterError, match="no other contrasts than those that the parties declared"):
        center.variances(contrast)
    assert center.n_variances == 0
    center.variances(declared)
    assert center.n_variances == D


def test_asking_again_and_again_gives_no_new_equations() -> None:
    """The same point in every turn of a run, and in another run: as many equations as the table has, and no more."""
    center, asked = Center(), parties()
    rows = solving_contrasts(D)
    declared = asked[0].plan.scaling(None).declared_contrast
    for one in asked:
        one.begin("next")
    for run in ("r", "next"):
        for turn in range(4):
            center.keep(asked, QUESTIONS.curvature, AT_ZERO, turn=turn, run=run)
            center.node.compute(run, "invert", {})
            with pytest.raises(CenterError, match="no other contrasts"):
                center.variances(rows[turn : turn + 2], run)
            center.variances(declared, run)
    opened = np.unique(
        np.concatenate([p["contrast"] for name, p in center.engine.opened if name == "variances"]), axis=0
    )
    assert len(opened) == D
    assert solved(opened, np.ones(D)) is None


def test_the_inverse_of_the_bound_has_no_variances_at_all() -> None:
    center, asked = Center(), parties()
    center.keep(asked, QUESTIONS.bound, Measure(units=None))
    center.node.compute("r", "invert", {})
    for contrast in (None, asked[0].plan.scaling(None).declared_contrast):
        with pytest.raises(CenterError, match="no other contrasts"):
            center.variances(contrast)


def test_one_colluding_party_declares_nothing_for_the_others() -> None:
    """Contrasts are opened that all parties of the sum declared; nothing is kept of a sum where they differ."""
    center, (victim, colluder) = Center(), parties()
    mine = {"contrast": solving_contrasts(D)}
    with pytest.MonkeyPatch.context() as patch:
        answer = victim.ask(QUESTIONS.curvature, AT_ZERO)
        patch.setattr("tacit.methods.privlogit.unit.Scaling.declared_contrast", mine["contrast"])
        with pytest.raises(CenterError, match="'north', 'south' state different terms of one sum"):
            center.keep([victim, colluder], QUESTIONS.curvature, AT_ZERO)
    envelope: Any = answer.value["curvature"]
    assert unseal(envelope["envelopes"][0], NODE_SEALS[0]).label.contrasts
    with pytest.raises(CenterError, match="reads curvature, which the run does not keep"):
        center.node.compute("r", "invert", {})


# --- other ways to the curvature -------------------------------------------------------------------------------------


def inverted(A: Floats, **arguments: Any) -> list[Floats]:
    """The program on plain numbers."""
    from jax.experimental import enable_x64

    with enable_x64():
        return [np.asarray(value) for value in PROGRAMS["invert"].function(A, **arguments)]


def test_nothing_is_opened_of_an_inverse_that_has_not_settled() -> None:
    """After one step X = b I - c A. Steps near 0 would tell X A as a matrix, and so A: here X is 0 instead."""
    A = np.array([[0.6, 0.1, 0.0], [0.1, 0.3, 0.05], [0.0, 0.05, 0.02]])
    for tolerance in (1e-6, 1e6):  # whatever the coordinator asks for
        raw, inverse, settled = inverted(A, tolerance=tolerance, condition_bits=1)
        assert np.linalg.norm(raw @ A - np.eye(D)) > 0.1
        np.testing.assert_array_equal(inverse, np.zeros((D, D)))
        assert settled == 0
    np.testing.assert_allclose(inverted(A, tolerance=1e-5, condition_bits=12)[1] @ A, np.eye(D), atol=1e-5)
    opening = [program for program in PROGRAMS.values() if not {"residual_ok", "dependent"} & set(program.opens)]
    assert all("unsettled" not in program.reads for program in opening)


def test_of_the_same_answers_one_inverse_is_opened_from() -> None:
    """Two inverses on the way to the same one differ by a polynomial of the curvature."""
    center, asked = Center(), parties()
    center.keep(asked, QUESTIONS.curvature, AT_ZERO)
    center.node.compute("r", "invert", {})
    center.node.compute("r", "step", {})
    center.node.compute("r", "refine", {})
    for program in ("step", "variances"):
        public: dict[str, Value] = {"contrast": asked[0].plan.scaling(None).declared_contrast}
        with pytest.raises(CenterError, match="another inverse of the same answers was opened from before"):
            center.node.compute("r", program, public if program == "variances" else {})


@pytest.mark.parametrize("name", ["inverse", "curvature"])
def test_one_colluding_partys_own_inverse_does_not_stand_for_the_pooled_one(name: str) -> None:
    """The identity in the inverse's place would open the pooled gradient as it is."""
    center, asked = Center(), parties()
    center.keep(asked, QUESTIONS.point, AT_ZERO)
    bond = asked[1].bond
    label = Label(
        context="own", party="south", n_parties=1, use=name, sum_group=sum_group_digest(bond.sum_group), run="r",
        bound=(NormBound(size=D * D, norm=2**42),), ledger=asked[1].guard._marks.next(),
    )  # fmt: skip
    identity = (np.eye(D) * 2.0**40).astype(np.int64).ravel()
    envelopes = seal(identity, label, SEAL_KEYS, rng=Rng.system(), sign=bond.sign)
    keep_signed(center.nodes, "r", name, "own", {"south": envelopes}, (D, D), ["north", "south"])
    if name == "curvature":
        center.node.compute("r", "invert", {})
    with pytest.raises(CenterError, match="program 'step' reads sums over different parties"):
        center.node.compute("r", "step", {})


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("step", {"scale": np.eye(D)}),  # would open the inverse times the gradient's diagonal
        ("compare", {"tolerance": np.linspace(-1, 1, 9)}),  # would read a difference of likelihoods
        ("diagnose", {"threshold": np.ones((9, 1))}),  # would read the diagonal of the inverse
    ],
)
def test_one_program_is_asked_once_and_not_for_a_list(program: str, arguments: dict[str, Value]) -> None:
    with pytest.raises(SettingError, match="must be one number"):
        PROGRAMS[program].arguments(arguments)


def test_another_shape_makes_another_program() -> None:
    """Why nodes look at shapes: of a curvature in four dimensions `diagnose` opens a bit for each entry."""
    from jax.experimental import enable_x64

    A = np.array([[0.6, 0.1, 0.0], [0.1, 0.3, 0.05], [0.0, 0.05, 0.2]])
    diagnose, step = PROGRAMS["diagnose"].function, PROGRAMS["step"].function
    classes = np.arange(2.0 * D).reshape(D, 2)  # a gradient of two classes, and the same numbers as another
    with enable_x64():
        bits = [
            np.asarray(diagnose(A.reshape(shape), threshold=1.0, condition_bits=1)[0]).size
            for shape in ((D, D), (1, 1, D, D))
        ]
        steps = [np.sort(np.asarray(step(A, g, scale=1.0)[0]).ravel()) for g in (classes, classes.reshape(2, D, 1))]
    assert bits == [D, D * D]
    assert not np.allclose(*steps)  # as many equations again


ODD_SHAPES: list[dict[str, tuple[int, ...]]] = [
    {"curvature": (1, 1, D, D)},
    {"curvature": (1, D, D)},
    {"curvature": (D * D,)},
    {"curvature": (1, D * D)},
    {"gradient": (1, D, 1)},
    {"gradient": ()},
    {"likelihood": (1,)},
    {"likelihood": (1, 1)},
]


@pytest.mark.parametrize("shapes", ODD_SHAPES)
def test_nothing_is_kept_in_a_shape_that_no_program_reads(shapes: dict[str, tuple[int, ...]]) -> None:
    center, asked = Center(), parties()
    with pytest.raises(CenterError, match="no program reads"):
        center.keep(asked, QUESTIONS.curvature, AT_ZERO, shapes=shapes)
    center.keep(asked, QUESTIONS.curvature, AT_ZERO)


def test_the_same_numbers_are_kept_in_one_shape() -> None:
    center, asked = Center(), parties()
    center.keep(asked, QUESTIONS.curvature, AT_ZERO)
    with pytest.raises(CenterError, match="'gradient' was kept in another shape before"):
        center.keep(asked, QUESTIONS.curvature, AT_ZERO, shapes={"gradient": (D, 1)})
    center.node.compute("r", "invert", {})
    center.node.compute("r", "step", {})


def test_a_gradient_of_another_model_is_not_multiplied() -> None:
    center, asked = Center(), parties()
    center.keep(asked, QUESTIONS.curvature, AT_ZERO, shapes={"gradient": (1, D)})
    center.node.compute("r", "invert", {})
    with pytest.raises(CenterError, match="not of the inverse's features"):
        center.node.compute("r", "step", {})
