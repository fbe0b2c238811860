"""Wang 2018: ternary descent of networks, hypothesis transfer, and PrivLogit."""

from __future__ import annotations

from tacit.reproduce.result import Publication
from tacit.reproduce.wang.accuracy_4 import FIGURE_4_4, FIGURE_4_5, TABLE_4_2, TABLE_4_3
from tacit.reproduce.wang.budget import FIGURE_3_2, TABLE_3_1
from tacit.reproduce.wang.figures_3 import FIGURE_3_3, FIGURE_3_4, FIGURE_3_5, FIGURE_3_6
from tacit.reproduce.wang.regression_5 import FIGURE_5_2, FIGURE_5_3, FIGURE_5_4, TABLE_5_1
from tacit.reproduce.wang.starts_5 import FIGURE_5_5
from tacit.reproduce.wang.weights_4 import FIGURE_4_2, FIGURE_4_3, TABLE_4_1

DOCUMENT = Publication(
    "wang",
    "Wang 2018, Multi-Party Privacy-Preserving Machine Learning and Its Applications (dissertation)",
    (
        *(TABLE_3_1, FIGURE_3_2, FIGURE_3_3, FIGURE_3_4, FIGURE_3_5, FIGURE_3_6),
        *(TABLE_4_1, FIGURE_4_2, FIGURE_4_3, FIGURE_4_4, FIGURE_4_5, TABLE_4_2, TABLE_4_3),
        *(TABLE_5_1, FIGURE_5_2, FIGURE_5_3, FIGURE_5_4, FIGURE_5_5),
    ),
)
