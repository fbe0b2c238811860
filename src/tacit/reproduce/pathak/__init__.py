"""Pathak, Rane and Raj 2010: averaging of locally trained classifiers."""

from __future__ import annotations

from tacit.reproduce.pathak.figure_2 import FIGURE_2
from tacit.reproduce.pathak.theorem import THEOREM_4_2, THEOREM_4_3, THEOREM_4_4
from tacit.reproduce.result import Publication

DOCUMENT = Publication(
    "pathak",
    "Pathak, Rane and Raj 2010, Multiparty Differential Privacy via Aggregation of Locally Trained Classifiers",
    (FIGURE_2, THEOREM_4_2, THEOREM_4_3, THEOREM_4_4),
)
