"""Wang 2018: ternary descent of networks, hypothesis transfer, and PrivLogit."""

from __future__ import annotations

from tacit.reproduce.result import Publication
from tacit.reproduce.wang.budget import FIGURE_3_2, TABLE_3_1
from tacit.reproduce.wang.figures_3 import FIGURE_3_3, FIGURE_3_4, FIGURE_3_5, FIGURE_3_6

DOCUMENT = Publication(
    "wang",
    "Wang 2018, Multi-Party Privacy-Preserving Machine Learning and Its Applications (dissertation)",
    (TABLE_3_1, FIGURE_3_2, FIGURE_3_3, FIGURE_3_4, FIGURE_3_5, FIGURE_3_6),
)
