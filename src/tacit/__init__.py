"""Learn together, tell nothing: several organisations fit one classifier without showing their data to anybody.

import tacit

parties = tacit.Federation.split(X, y, groups=hospital, norm_bound=1.0)
model = tacit.Averaging(epsilon=1.0).fit(parties)
print(model.summary())
model.report.save("report.html")
"""

from tacit.data.schema import Binary, Categorical, Numeric, Schema, Target
from tacit.data.table import Table
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods import (
    Averaging,
    Ensemble,
    FunctionalMechanism,
    HypothesisTransfer,
    Local,
    NoisyDescent,
    ObjectivePerturbation,
    Pooled,
    TernaryDescent,
)
from tacit.methods.file import load
from tacit.methods.local_classifier import assign_local_classifier, register_local_classifier
from tacit.methods.private_evaluation import PrivateEvaluation, evaluate_privately
from tacit.methods.public_model import pretrain
from tacit.models.network import register_module
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Budget, Ledger
from tacit.rand import Rng

__version__ = "0.1.0"

__all__ = [
    "Averaging",
    "Binary",
    "Budget",
    "Categorical",
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
    "PrivateEvaluation",
    "Rng",
    "Schema",
    "Table",
    "TacitError",
    "Target",
    "TernaryDescent",
    "assign_local_classifier",
    "evaluate_privately",
    "load",
    "pretrain",
    "register_local_classifier",
    "register_module",
]
