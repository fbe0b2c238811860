"""Learn together, tell nothing: several organisations fit one classifier without showing their data to anybody.

import tacit

parties = tacit.Federation.split(X, y, groups=hospital, norm_bound=1.0)
model = tacit.PrivateNewton(epsilon=1.0).fit(parties)
print(model.summary())
model.report.save("report.html")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit import datasets
    from tacit.data.schema import Binary, Categorical, Numeric, Schema, Target
    from tacit.data.table import Table
    from tacit.errors import TacitError
    from tacit.federation.federation import Federation
    from tacit.federation.policy import Policy
    from tacit.methods import (
        Averaging,
        CuratorAveraging,
        Ensemble,
        FunctionalMechanism,
        HypothesisTransfer,
        Local,
        NoisyDescent,
        ObjectivePerturbation,
        Pooled,
        PrivateNewton,
        PrivLogit,
        SecureNewton,
        TernaryDescent,
        load,
    )
    from tacit.methods.ensemble.classifier import assign_local_classifier, register_local_classifier
    from tacit.methods.evaluation.method import PrivateEvaluation, evaluate_privately
    from tacit.methods.public_model import pretrain
    from tacit.models.network import register_module
    from tacit.privacy.budget import Budget
    from tacit.privacy.guarantee import Guarantee
    from tacit.privacy.ledger import Ledger
    from tacit.rand import Rng
    from tacit.studies.audit import audit
    from tacit.studies.compare import compare
    from tacit.studies.in_code import Study
    from tacit.studies.looking import fit_in_looks

__version__ = "0.1.0"

# Where each public name is at home. It is imported when it is first asked for: a daemon that needs a few of them starts
# in a tenth of the time.
_HOMES = {
    "tacit.data.schema": ("Binary", "Categorical", "Numeric", "Schema", "Target"),
    "tacit.data.table": ("Table",),
    "tacit.errors": ("TacitError",),
    "tacit.federation.federation": ("Federation",),
    "tacit.federation.policy": ("Policy",),
    "tacit.methods": (
        "Averaging",
        "CuratorAveraging",
        "Ensemble",
        "FunctionalMechanism",
        "HypothesisTransfer",
        "Local",
        "NoisyDescent",
        "ObjectivePerturbation",
        "Pooled",
        "PrivLogit",
        "PrivateNewton",
        "SecureNewton",
        "TernaryDescent",
        "load",
    ),
    "tacit.methods.ensemble.classifier": ("assign_local_classifier", "register_local_classifier"),
    "tacit.methods.evaluation.method": ("PrivateEvaluation", "evaluate_privately"),
    "tacit.methods.public_model": ("pretrain",),
    "tacit.models.network": ("register_module",),
    "tacit.privacy.budget": ("Budget",),
    "tacit.privacy.guarantee": ("Guarantee",),
    "tacit.privacy.ledger": ("Ledger",),
    "tacit.rand": ("Rng",),
    "tacit.studies.audit": ("audit",),
    "tacit.studies.compare": ("compare",),
    "tacit.studies.in_code": ("Study",),
    "tacit.studies.looking": ("fit_in_looks",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """A public name, from its home."""
    if name == "datasets":
        return import_module("tacit.datasets")  # which makes it an attribute of this module
    if name in _HOME:
        value: object = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return __all__


__all__ = [
    "Averaging",
    "Binary",
    "Budget",
    "Categorical",
    "CuratorAveraging",
    "Ensemble",
    "Federation",
    "FunctionalMechanism",
    "Guarantee",
    "HypothesisTransfer",
    "Ledger",
    "Local",
    "NoisyDescent",
    "Numeric",
    "ObjectivePerturbation",
    "Policy",
    "Pooled",
    "PrivLogit",
    "PrivateEvaluation",
    "PrivateNewton",
    "Rng",
    "Schema",
    "SecureNewton",
    "Study",
    "Table",
    "TacitError",
    "Target",
    "TernaryDescent",
    "assign_local_classifier",
    "audit",
    "compare",
    "datasets",
    "evaluate_privately",
    "fit_in_looks",
    "load",
    "pretrain",
    "register_local_classifier",
    "register_module",
]
