"""Table 4.1, figures 4.2 and 4.3 as results: the sources, and how well their shares of the target are found."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from tacit.reproduce.plot import Panel, PlotLine, panels_plot
from tacit.reproduce.result import (
    Claim,
    Finding,
    Number,
    NumberTable,
    Reproduction,
    ResultCell,
    Summary,
    Values,
    judged,
)
from tacit.reproduce.wang.accuracy_4 import DRAWS, words
from tacit.reproduce.wang.text import TOPICS, corpus
from tacit.reproduce.wang.transfer import NO_NOISE, SIZES, weight_errors

EPSILONS = (0.1, 0.5, 1.0, 3.0, 5.0, 10.0, 100.0, NO_NOISE)
MIXTURES = {
    "newsgroups20": (
        (0.2, 0.0, 0.4, 0.0, 0.4),
        (0.2, 0.2, 0.2, 0.2, 0.2),
        (0.2, 0.0, 0.0, 0.8, 0.0),
        (0.0, 0.0, 0.6, 0.0, 0.4),
    ),
    "amazon_sentiment": (
        (0.75, 0.0, 0.25, 0.0),
        (0.1, 0.2, 0.4, 0.3),
        (0.0, 0.5, 0.5, 0.0),
        (0.0, 0.2, 0.4, 0.4),
    ),
}
CALIBRATIONS = {"paper": "as printed (NOT PRIVATE)", "sound": "sound"}


def source_counts(*, seed: int) -> dict[str, object]:
    """The number of messages and of computers' ones in each source, and of words in all."""
    texts = corpus("newsgroups20")
    found = {name: [len(labels), int(labels.sum())] for name, labels in texts.labels.items()}
    return {"sources": found, "words": texts.n_columns}


def _sources(values: Values) -> Summary:
    lines = []
    for name, (n, about) in values["sources"]["sources"].items():
        lines.append([name, ", ".join(TOPICS[name]), f"{n:,}", f"{about:,}"])
    caption = "The topics of each source, the first of which is about computers:"
    header = ["source", "topics", "messages with words of the vocabulary", "about computers"]
    return Summary([NumberTable(header, lines, caption)])


def _enough(values: Values) -> Finding:
    sizes = SIZES["newsgroups20"]
    needed = sizes.labelled + sizes.unlabelled + sizes.public // 5
    counts = {name: n for name, (n, _) in values["sources"]["sources"].items()}
    left = {name: n - needed for name, n in counts.items()}
    least = min(left, key=lambda name: left[name])
    why = f"{needed:,} messages of each source are used; for target and test {least} has the fewest left, {left[least]}"
    return judged([n >= 1 for n in left.values()], why)


def _vocabulary(values: Values) -> Finding:
    found = values["sources"]["words"]
    why = f"{found:,} words with frequencies between 0.5 % and half of a source's messages; 5,588 are printed"
    return judged([abs(found / 5588 - 1) <= 0.1], f"{why} (a tenth is allowed)")


TABLE_4_1 = Reproduction(
    name="wang-table-4.1",
    title="Topics of the messages in each source",
    setting=(
        "20 newsgroups, all 18,846 messages, without headers, quotations, signatures and stop words; messages without "
        "a word of the vocabulary are left out."
    ),
    data=("newsgroups20",),
    numbers=(
        Number("sources", 5),
        Number("topics of a source", 3),
        Number("words of all sources together", 5588),
        Number("labelled messages of a source", 800),
        Number("unlabelled messages of a source", 1000),
    ),
    cells=lambda quick: [ResultCell("sources", source_counts, {})],
    summarise=_sources,
    claims=(
        Claim("Each source has 800 labelled and 1,000 unlabelled messages, beside 300 public ones.", _enough),
        Claim("The vocabularies of all sources together have 5,588 terms.", _vocabulary),
    ),
)


def weight_cells(data: str) -> Callable[[bool], list[ResultCell]]:
    """One cell a draw."""

    def cells(quick: bool) -> list[ResultCell]:
        mixtures = [list(mixture) for mixture in MIXTURES[data]]
        settings = {"data": data, "quick": quick, "mixtures": mixtures, "epsilons": list(EPSILONS)}
        n_draws = 2 if quick else DRAWS
        return [ResultCell(f"draw-{k + 1}", weight_errors, {**settings, "draw": k}) for k in range(n_draws)]

    return cells


def _mean(values: Values, calibration: str, m: int, e: int) -> tuple[float, float]:
    found = [cell[calibration][m][e] for cell in values.values()]
    error = float(np.std(found, ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else 0.0
    return float(np.mean(found)), error


def even_error(mixture: tuple[float, ...]) -> float:
    """The mean squared error of equal weights."""
    return float(np.mean((np.array(mixture) - 1 / len(mixture)) ** 2))


def weight_summary(name: str, data: str) -> Callable[[Values], Summary]:
    """A table, and a panel for each mixture."""

    def summarise(values: Values) -> Summary:
        lines = []
        for m, mixture in enumerate(MIXTURES[data]):
            for calibration, shown in CALIBRATIONS.items():
                errors = [f"{_mean(values, calibration, m, e)[0]:.4f}" for e in range(len(EPSILONS))]
                lines.append([str(list(mixture)), shown, *errors, f"{even_error(mixture):.4f}"])
        header = ["true shares", "noise", *(f"epsilon {words(epsilon)}" for epsilon in EPSILONS), "equal weights"]
        caption = "Mean squared error of the weights:"
        return Summary([NumberTable(header, lines, caption)], {f"{name}.svg": partial(_draw, values)})

    def _draw(values: Values) -> str:
        panels = []
        for m, mixture in enumerate(MIXTURES[data]):
            finite = [e for e, epsilon in enumerate(EPSILONS) if epsilon != NO_NOISE]
            lines = {}
            for calibration, shown in CALIBRATIONS.items():
                points = [_mean(values, calibration, m, e) for e in finite]
                xs = [EPSILONS[e] for e in finite]
                lines[shown] = PlotLine(xs, [p[0] for p in points], [p[1] for p in points])
            marks = {"no noise": _mean(values, "paper", m, len(EPSILONS) - 1)[0], "equal weights": even_error(mixture)}
            panels.append(
                Panel(lines=lines, x="epsilon", y="squared error", title=f"{list(mixture)}", marks=marks, log_x=True)
            )
        return panels_plot(panels, figure_id=name, title="Mean squared error of the weights of the sources")

    return summarise


def _good_when_stringent(data: str, values: Values) -> Finding:
    """Whether the error at epsilon 1 is well below that of equal weights: as printed, and by sound noise."""
    e = EPSILONS.index(1.0)
    uneven = [m for m, mixture in enumerate(MIXTURES[data]) if even_error(mixture) > 1e-9]
    even = float(np.mean([even_error(MIXTURES[data][m]) for m in uneven]))
    found = {
        calibration: float(np.mean([_mean(values, calibration, m, e)[0] for m in uneven]))
        for calibration in CALIBRATIONS
    }
    why = f"mean squared error at epsilon 1 over the uneven mixtures: {found['paper']:.4f} with the printed noise, "
    why += f"{found['sound']:.4f} with sound noise, {even:.4f} for equal weights (less than half of it is asked)"
    return judged([error < 0.5 * even for error in found.values()], why)


def _to_zero(data: str, values: Values) -> Finding:
    """Whether the error falls to nearly zero with epsilon: with the printed noise at 5, and without noise."""
    five, last = EPSILONS.index(5.0), len(EPSILONS) - 1
    mixtures = range(len(MIXTURES[data]))

    def over(calibration: str, e: int) -> float:
        return float(np.mean([_mean(values, calibration, m, e)[0] for m in mixtures]))

    why = (
        f"over the mixtures: {over('paper', five):.4f} with the printed noise at epsilon 5, {over('paper', last):.4f} "
    )
    why += f"without noise, {over('sound', five):.4f} with sound noise at 5 (below .01 is asked)"
    return judged([over("paper", five) < 0.01, over("paper", last) < 0.01], why)


def _figure(number: str, data: str, title: str) -> Reproduction:
    name, sizes = f"wang-figure-{number}", SIZES[data]
    return Reproduction(
        name=name,
        title=title,
        setting=(
            f"{sizes.unlabelled:,} unlabelled texts of each source, {sizes.public:,} public ones, a target of "
            f"{sizes.target:,}; lambda_IW = 0.001 as printed. Means of {DRAWS} draws, one noise each. Sound: "
            "means along 20 public directions with Gaussian noise, delta 1e-6 ('tilt')."
        ),
        data=(data,),
        numbers=(
            Number("lambda_IW", 0.001),
            Number("repetitions", 20),
            Number("the curves' values", None, "not given"),
        ),
        cells=weight_cells(data),
        summarise=weight_summary(name, data),
        claims=(
            Claim(
                "The weights reveal the shares of the sources even under stringent privacy requirements.",
                partial(_good_when_stringent, data),
            ),
            Claim("As the requirement is relaxed, the error approaches zero.", partial(_to_zero, data)),
        ),
    )


FIGURE_4_2 = _figure("4.2", "newsgroups20", "Error of the weights found for four mixtures of newsgroups")
FIGURE_4_3 = _figure("4.3", "amazon_sentiment", "Error of the weights found for four mixtures of reviews")
