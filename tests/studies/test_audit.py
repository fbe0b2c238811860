"""A small audit of every method: no promise is refuted, what is wrong as printed is. `make audit` is the full one."""

from __future__ import annotations

from typing import Any, Self

import pytest

from tacit import Averaging, Federation, HypothesisTransfer, Pooled
from tacit.errors import NotConverged, RunError, SettingError
from tacit.federation.engine import InProcess
from tacit.methods import METHODS, make
from tacit.methods.neighbour import Neighbours
from tacit.methods.transfer.neighbour import printed_pair
from tacit.secure.paillier import key as paillier
from tacit.studies.audit import audit

SOUND: list[tuple[str, dict[str, Any]]] = [
    ("private-newton", {"delta": 0.3}),
    ("curator-averaging", {"delta": 0, "key_bits": 512}),
    ("averaging", {"delta": 0}),
    ("averaging", {"delta": 0.3}),
    ("objective-perturbation", {"delta": 0}),
    ("functional-mechanism", {"delta": 0}),
    ("functional-mechanism", {"delta": 0.3}),
    ("noisy-descent", {"delta": 0.3}),
    ("ensemble", {"delta": 0}),
    ("hypothesis-transfer", {"delta": 0}),
    ("ternary-descent", {"delta": 0.3}),
]
PRINTED = [
    ("averaging", {}),
    ("objective-perturbation", {}),
    ("functional-mechanism", {}),
    ("hypothesis-transfer", {}),
    ("noisy-descent", {"delta": 0.1}),
    ("ternary-descent", {"delta": 0.1}),
]
# Few runs find gross errors: a third of the noise, say. A large delta tells Gaussians apart with the fewest. To see
# half the noise reliably is `make audit`'s affair, and that of `test_half_the_noise_is_flagged` for one method.
RUNS = 150


def test_every_private_method_is_audited() -> None:
    private = {name for name, method in METHODS.items() if "epsilon" in method._get_param_names()}
    assert {name for name, _ in SOUND} == private
    assert all(METHODS[name].worst_neighbours() for name in private)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), SOUND)
def test_no_promise_is_refuted(name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "LEAST_BITS", 512)
    result = audit(make(name, {"epsilon": 1.0, **settings}), runs=RUNS, power=False, processes=0)
    assert result.passes


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), PRINTED)
def test_what_the_documents_print_is_flagged(name: str, settings: dict[str, Any]) -> None:
    model = make(name, {"epsilon": 1.0, "calibration": "paper", **settings})
    result = audit(model, runs=300 if name == "functional-mechanism" else 100, power=False, processes=0)
    assert not result.passes


def test_the_loss_of_printed_averaging_is_known_exactly() -> None:
    """sqrt(400) / (4 K) = 2.5 epsilon for K = 2 and a strong penalty."""
    audits = [audit(Averaging(epsilon=e, calibration="paper"), runs=20, power=False, processes=0) for e in (1.0, 2.0)]
    [as_it_is], [looser] = (result.as_it_is for result in audits)
    assert as_it_is.finding.epsilon == pytest.approx(2.5, rel=0.05)
    assert looser.finding.epsilon == pytest.approx(2 * as_it_is.finding.epsilon, rel=1e-6)
    assert as_it_is.finding.n_runs == 0
    assert audit(Averaging(epsilon=1.0), runs=40, power=False, processes=0).passes


def test_the_loss_of_printed_transfer_is_known_exactly() -> None:
    """sqrt(100) / 2 = 5 epsilon for a text of a hundred words; rows of norm 1 keep the promise."""
    [as_it_is] = audit(HypothesisTransfer(epsilon=1.0, calibration="paper"), runs=20, power=False, processes=0).as_it_is
    assert as_it_is.finding.epsilon == pytest.approx(5.0, rel=0.05)
    assert as_it_is.finding.n_runs == 0
    short = printed_pair(entry=0.1)
    assert short.loss is not None
    method = HypothesisTransfer(**{"epsilon": 1.0, "calibration": "paper", **short.settings})
    assert short.loss(method) <= 1.0


@pytest.mark.slow
def test_the_printed_ensemble_is_judged_by_its_released_model() -> None:
    """The document claims nothing of what its trusted entity sees, and its constants are twice what is needed."""
    result = audit(make("ensemble", {"epsilon": 4.0, "calibration": "paper"}), runs=400, power=False, processes=0)
    assert result.passes
    assert 0.5 < result.epsilon < 2.1


@pytest.mark.slow
def test_half_the_noise_is_flagged() -> None:
    seen: list[tuple[int, int]] = []
    model = make("ternary-descent", {"epsilon": 1.0, "delta": 0.3})
    result = audit(model, runs=500, processes=0, on_progress=lambda d, t: seen.append((d, t)))
    assert result.passes
    assert result.has_power
    assert result.epsilon_at_half > 1 > result.epsilon
    assert seen[-1][0] == seen[-1][1] == 2 * 2 * 2 * 500


PERSONS: list[tuple[str, dict[str, Any]]] = [
    ("private-newton", {"delta": 0.3}),
    ("averaging", {"delta": 0}),
    ("functional-mechanism", {"delta": 0}),
    ("noisy-descent", {"delta": 0.3}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), PERSONS)
def test_a_person_is_protected_where_it_is_the_unit_and_flagged_where_records_are(
    name: str, settings: dict[str, Any]
) -> None:
    """All eight records of a person are replaced."""
    asked = {"epsilon": 1.0, **settings}
    result = audit(make(name, {**asked, "unit": "person"}), runs=60, power=False, processes=0)
    assert result.passes
    result = audit(make(name, asked), runs=100, power=False, processes=0, replaced="person")
    assert not result.passes


@pytest.mark.slow
def test_a_party_is_protected_where_it_is_the_unit() -> None:
    asked = {"epsilon": 1.0, "delta": 0.3, "unit": "party"}
    assert audit(make("noisy-descent", asked), runs=RUNS, power=False, processes=0).passes
    with pytest.raises(SettingError, match="objective-perturbation names no neighbours that differ in a person"):
        audit(make("objective-perturbation"), runs=RUNS, power=False, processes=0, replaced="person")


def test_what_promises_nothing_cannot_be_audited() -> None:
    with pytest.raises(SettingError, match="states no epsilon"):
        audit(Pooled())


class FailsOnARecord(Averaging):
    """Noised like its parent, but it fails on one of the two neighbours."""

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        return Averaging.worst_neighbours()[:1]

    def fit(self, parties: Federation, y: None = None) -> Self:
        assert isinstance(parties.engine, InProcess)
        if parties.engine.guard("a").table.arrays()[1][0] == 1:
            raise NotConverged("the local fit failed")
        return super().fit(parties)


def test_a_failure_on_one_neighbour_alone_is_flagged() -> None:
    """No value that was opened tells the two apart beyond the promise: whether there is one does."""
    result = audit(FailsOnARecord(epsilon=1.0, delta=0), runs=80, power=False, processes=0)
    assert not result.passes


def test_an_audit_in_which_every_run_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(self: Averaging, parties: Federation) -> Averaging:
        raise NotConverged("the local fit failed")

    monkeypatch.setattr(Averaging, "fit", fit)
    with pytest.raises(RunError, match="every run of averaging on 'an extreme label' fails, and alike"):
        audit(Averaging(epsilon=1.0, delta=0), runs=20, power=False, processes=0)
