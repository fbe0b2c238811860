"""Du, Li and Li 2019: objective perturbation and the functional mechanism for several parties."""

from __future__ import annotations

from tacit.reproduce.du.figure import FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5
from tacit.reproduce.result import Publication

DOCUMENT = Publication(
    "du",
    "Du, Li and Li 2019, Privacy-Preserving Multiparty Learning for Logistic Regression",
    (FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5),
)
