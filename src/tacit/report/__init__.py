"""What is shown: tables, plots and pages, made from plain facts about a run.

Nothing here knows a method. A method fills in `RunFacts`; what a reader is shown follows from these alone.
"""

from tacit.report.comparison import ComparisonEntry, ComparisonReport
from tacit.report.facts import FitFacts, PartyFacts, RunFacts, TrafficFacts
from tacit.report.metrics import CalibrationBin, Metrics, RocPoint, evaluate
from tacit.report.page import Report
from tacit.report.row import INTERCEPT, CoefficientRow

__all__ = [
    "INTERCEPT",
    "CalibrationBin",
    "CoefficientRow",
    "ComparisonEntry",
    "ComparisonReport",
    "FitFacts",
    "Metrics",
    "PartyFacts",
    "Report",
    "RocPoint",
    "RunFacts",
    "TrafficFacts",
    "evaluate",
]
