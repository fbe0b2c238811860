"""Hamm, Cao and Belkin 2016: ensembles of local classifiers that label auxiliary data."""

from __future__ import annotations

from tacit.reproduce.hamm.figure import FIGURE_2, FIGURE_3, FIGURE_4
from tacit.reproduce.hamm.theorem import THEOREM_4
from tacit.reproduce.result import Publication

DOCUMENT = Publication(
    "hamm",
    "Hamm, Cao and Belkin 2016, Learning Privately from Multiparty Data",
    (FIGURE_2, FIGURE_3, FIGURE_4, THEOREM_4),
)
