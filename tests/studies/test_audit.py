"""A small audit of every method: no promise is refuted, what is wrong as printed is. `make audit` is the full one."""

from __future__ import annotations

from typing import Any

import pytest

from tacit import Averaging, Pooled
from tacit.errors import SettingError
from tacit.methods import METHODS, make
from tacit.secure.paillier import key as paillier
from tacit.studies.audit import audit

SOUND: list[tuple[str, dict[str, Any]]] = [
    ("private-newton", {"delta": 0.1}),
    ("curator-averaging", {"delta": 0, "key_bits": 512}),
    ("averaging", {"delta": 0}),
    ("averaging", {"delta": 0.1}),
    ("objective-perturbation", {"delta": 0}),
    ("functional-mechanism", {"delta": 0}),
    ("functional-mechanism", {"delta": 0.1}),
    ("noisy-descent", {"delta": 0.1}),
    ("ensemble", {"delta": 0}),
    ("hypothesis-transfer", {"delta": 0}),
    ("ternary-descent", {"delta": 0.1}),
]
PRINTED = [("objective-perturbation", {}), ("noisy-descent", {"delta": 0.1}), ("ternary-descent", {"delta": 0.1})]


def test_every_private_method_is_audited() -> None:
    private = {name for name, method in METHODS.items() if "epsilon" in method._get_param_names()}
    assert {name for name, _ in SOUND} == private
    assert all(METHODS[name].worst_neighbours() for name in private)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), SOUND)
def test_no_promise_is_refuted(name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "LEAST_BITS", 512)
    result = audit(make(name, {"epsilon": 1.0, **settings}), runs=300, power=False, processes=0)
    assert result.passes


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), PRINTED)
def test_what_the_documents_print_is_flagged(name: str, settings: dict[str, Any]) -> None:
    model = make(name, {"epsilon": 1.0, "calibration": "paper", **settings})
    result = audit(model, runs=300, power=False, processes=0)
    assert not result.passes


@pytest.mark.slow
def test_half_the_noise_is_flagged() -> None:
    seen: list[tuple[int, int]] = []
    result = audit(Averaging(epsilon=1.0, delta=0), runs=600, processes=0, on_progress=lambda d, t: seen.append((d, t)))
    assert result.passes
    assert result.has_power
    assert result.epsilon_at_half > 1 > result.epsilon
    assert seen[-1][0] == seen[-1][1] == 2 * 2 * 2 * 600


def test_what_promises_nothing_cannot_be_audited() -> None:
    with pytest.raises(SettingError, match="states no epsilon"):
        audit(Pooled())
