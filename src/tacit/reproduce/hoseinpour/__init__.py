"""Hoseinpour, Hoseinpour and Aghagolzadeh: noisy descent from a public start."""

from __future__ import annotations

from tacit.reproduce.hoseinpour import figure
from tacit.reproduce.hoseinpour.table_1 import TABLE_1
from tacit.reproduce.result import Publication

DOCUMENT = Publication(
    "hoseinpour",
    "Hoseinpour, Hoseinpour and Aghagolzadeh 2023, Accuracy Improvement in Differentially Private Logistic "
    "Regression: A Pre-training Approach",
    (
        TABLE_1,
        figure.FIGURE_4,
        figure.FIGURE_5,
        figure.FIGURE_6,
        figure.FIGURE_7,
        figure.FIGURE_8,
        figure.FIGURE_9,
        figure.FIGURE_10,
        figure.FIGURE_11,
    ),
)
