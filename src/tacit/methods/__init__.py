"""The ways to learn: one file is one method is one document."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from tacit.errors import SettingError
from tacit.methods.averaging import Averaging
from tacit.methods.curator_averaging import CuratorAveraging
from tacit.methods.ensemble import Ensemble
from tacit.methods.functional_mechanism import FunctionalMechanism
from tacit.methods.hypothesis_transfer import HypothesisTransfer
from tacit.methods.local import Local
from tacit.methods.method import Learned, Method
from tacit.methods.noisy_descent import NoisyDescent
from tacit.methods.objective_perturbation import ObjectivePerturbation
from tacit.methods.pooled import Pooled
from tacit.methods.private_newton import PrivateNewton
from tacit.methods.privlogit import PrivLogit
from tacit.methods.secure_newton import SecureNewton
from tacit.methods.ternary_descent import TernaryDescent

__all__ = [
    "METHODS",
    "Averaging",
    "CuratorAveraging",
    "Ensemble",
    "FunctionalMechanism",
    "HypothesisTransfer",
    "Learned",
    "Local",
    "Method",
    "NoisyDescent",
    "ObjectivePerturbation",
    "Pooled",
    "PrivLogit",
    "PrivateNewton",
    "SecureNewton",
    "TernaryDescent",
    "make",
]

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        PrivateNewton,
        PrivLogit,
        SecureNewton,
        Pooled,
        Local,
        Averaging,
        CuratorAveraging,
        ObjectivePerturbation,
        FunctionalMechanism,
        NoisyDescent,
        Ensemble,
        HypothesisTransfer,
        TernaryDescent,
    )
}


def make(name: str, settings: Mapping[str, object] | None = None) -> Method:
    """The method of that name, with settings by their Python names."""
    if name not in METHODS:
        raise SettingError(f"method {name!r} is unknown; {_suggest(name, list(METHODS))}")
    method = METHODS[name]
    known = method._get_param_names()
    for key in settings or {}:
        if key not in known:
            raise SettingError(f"{name} has no setting {key!r}; {_suggest(key, known)}")
    return method(**(settings or {}))


def _suggest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
