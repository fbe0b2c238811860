"""The pictures of a report, each as one `<svg>` element, in the colour-blind-safe colours of Okabe and Ito."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.report.facts import PartyFacts
from tacit.report.metrics import Metrics
from tacit.report.number import number, percent, plural, short
from tacit.report.plain import printable
from tacit.report.row import INTERCEPT, NOT_IDENTIFIED, CoefficientRow
from tacit.report.svg import drawing, svg_element

if TYPE_CHECKING:  # it is imported when something is drawn: a daemon draws nothing
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#000000",
)
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
DASHES = ("-", "--", "-.", ":")
GREY = "#767676"

MOST_TERMS = 25
MOST_BARS = 40
LONGEST_LABEL = 36
WIDTH = 7.2  # inches


@dataclass(frozen=True)
class Bar:
    """One method in a comparison: its figures (None if not measured), whether anything is promised, and how far the
    accuracies of repeated runs lie apart.
    """

    label: str
    metrics: Metrics | None
    is_private: bool
    accuracy_spread: float | None = None


def forest_plot(rows: Sequence[CoefficientRow], *, figure_id: str) -> str:
    """Odds ratios with the rows' own 95 % intervals on a logarithmic axis, the largest |z| first, at most 25.

    Where nothing has a z, the largest effect comes first. A term that is not identified comes last, with words in the
    place of a point.
    """
    terms = [row for row in rows if row.name != INTERCEPT]
    shown = sorted(terms, key=lambda row: row.weight, reverse=True)[:MOST_TERMS]
    title = "Odds ratios" if len(shown) == len(terms) else f"Odds ratios: the {MOST_TERMS} largest of {len(terms)}"
    with_intervals = any(row.low is not None for row in shown)
    order = "largest |z| first" if any(row.z is not None for row in shown) else "largest effect first"

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axvline(0, color=GREY, linewidth=1, linestyle="--")
        for height, row in enumerate(shown):
            _draw_effect(axes, height, row)
        axes.set_yticks(range(len(shown)), [_label(row.shown_label) for row in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        _odds_axis(axes)
        axes.grid(axis="x", color="#e5e5e5", linewidth=0.8)
        axes.set_axisbelow(True)

    return picture(
        draw,
        figure_id=figure_id,
        title=title + (", with 95 % intervals" if with_intervals else ""),
        description=f"Odds ratio of each term, {order}. {'; '.join(map(_effect_words, shown))}.",
        height=1.1 + 0.27 * max(len(shown), 2),
    )


def _draw_effect(axes: Axes, height: int, row: CoefficientRow) -> None:
    if row.estimate is None:
        words = f"{NOT_IDENTIFIED} at this epsilon"
        axes.text(0.01, height, words, color=GREY, fontsize=8, va="center", transform=axes.get_yaxis_transform())
        return
    colour = BLUE if row.estimate >= 0 else VERMILION
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [height, height], color=colour, lw=1.6)
    axes.plot([row.estimate], [height], marker="o" if row.estimate >= 0 else "s", color=colour, markersize=5.5)


def _effect_words(row: CoefficientRow) -> str:
    if row.odds_low is None:
        return f"{row.shown_label}: {number(row.odds_ratio) if row.identified else NOT_IDENTIFIED}"
    return f"{row.shown_label}: {number(row.odds_ratio)} ({number(row.odds_low)} to {number(row.odds_high)})"


def calibration_plot(metrics: Mapping[str, Metrics], *, figure_id: str) -> str:
    """Observed rates against predicted probabilities, above how many records each tenth holds."""

    def draw(figure: Figure) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        upper.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, label="perfect")
        width = 0.09 / len(metrics)
        for k, (label, figures) in enumerate(metrics.items()):
            x = [b.mean_predicted for b in figures.calibration]
            style = {"color": SERIES[k % len(SERIES)], "linestyle": DASHES[k % len(DASHES)]}
            upper.plot(
                x, [b.observed_rate for b in figures.calibration], marker="o", ms=4.5, label=_label(label), **style
            )
            tenths = [min(int(10 * b.mean_predicted), 9) / 10 + 0.005 for b in figures.calibration]
            shares = [100 * b.count / figures.n for b in figures.calibration]
            lower.bar([t + k * width for t in tenths], shares, width=width, align="edge", color=SERIES[k % len(SERIES)])
        upper.set(ylim=(-0.03, 1.03), xlim=(-0.02, 1.02), ylabel="happened")
        upper.legend(frameon=False, loc="upper left", fontsize=9)
        lower.set(xlabel="predicted probability", ylabel="% of records")

    errors = "; ".join(f"{label}: {number(m.expected_calibration_error, 3)}" for label, m in metrics.items())
    return picture(
        draw,
        figure_id=figure_id,
        title="Calibration: do predicted probabilities come true?",
        description=f"Points on the diagonal are well calibrated. Expected calibration error, {errors}.",
        height=4.6,
        width=5.4,
    )


def roc_plot(metrics: Mapping[str, Metrics], *, figure_id: str) -> str:
    """True against false positive rates, one curve per set of records; empty if none has a curve."""
    curves = {label: figures for label, figures in metrics.items() if figures.roc}
    if not curves:
        return ""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, label="guessing (0.5)")
        for k, (label, figures) in enumerate(curves.items()):
            axes.plot(
                [point.false_positive_rate for point in figures.roc],
                [point.true_positive_rate for point in figures.roc],
                color=SERIES[k % len(SERIES)],
                linestyle=DASHES[k % len(DASHES)],
                linewidth=1.8,
                label=f"{_label(label)} ({figures.auc:.3f})",
            )
        axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.legend(frameon=False, loc="lower right", fontsize=9)

    areas = "; ".join(f"{label}: {figures.auc:.3f}" for label, figures in curves.items())
    return picture(
        draw,
        figure_id=figure_id,
        title="ROC curve (area under it)",
        description=f"Area under the curve, {areas}. Guessing has 0.5.",
        height=4.6,
        width=5.4,
    )


def spending_plot(parties: Sequence[PartyFacts], *, figure_id: str) -> str:
    """What each party spent; a hatched full bar is a party whose spending no epsilon bounds."""
    shown = sorted(parties, key=lambda party: -party.epsilon)[:MOST_BARS] if len(parties) > MOST_BARS else list(parties)
    most = max((party.epsilon for party in shown if party.is_private), default=1.0) or 1.0

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for height, party in enumerate(shown):
            if party.is_private:
                axes.barh(height, party.epsilon, color=BLUE, height=0.62)
                words = short(party.epsilon)
            else:
                axes.barh(height, most, color="white", edgecolor=VERMILION, hatch="///", height=0.62)
                words = "NOT PRIVATE"
            end = party.epsilon if party.is_private else most
            axes.text(end + 0.012 * most, height, words, va="center", fontsize=9)
        axes.set_yticks(range(len(shown)), [_label(party.name) for party in shown])
        axes.set(ylim=(len(shown) - 0.4, -0.6), xlim=(0, 1.18 * most), xlabel="epsilon spent in this run")

    title = (
        "Spent by each party" if len(shown) == len(parties) else f"The {MOST_BARS} largest of {len(parties)} spendings"
    )
    words = "; ".join(f"{p.name}: {short(p.epsilon) if p.is_private else 'not private'}" for p in shown)
    height = 1.0 + 0.3 * max(len(shown), 2)
    return picture(draw, figure_id=figure_id, title=title, description=f"Epsilon. {words}.", height=height)


def comparison_plot(bars: Sequence[Bar], *, figure_id: str) -> str:
    """Accuracy and log-loss of several methods; the dashed line is what the commonest class alone would reach."""
    shown = [(bar, bar.metrics) for bar in bars if bar.metrics is not None]
    most = max((figures.log_loss for _, figures in shown), default=0.0) or 1.0

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        for height, (bar, figures) in enumerate(shown):
            style = {"color": BLUE} if bar.is_private else {"color": "#cfe3f1", "edgecolor": BLUE, "hatch": "///"}
            left.barh(height, 100 * figures.accuracy, height=0.62, **style)
            end = 100 * figures.accuracy
            if bar.accuracy_spread is not None:
                left.errorbar(end, height, xerr=100 * bar.accuracy_spread, color="black", capsize=3, linewidth=1.2)
                end += 100 * bar.accuracy_spread
            left.text(end + 1, height, percent(figures.accuracy), va="center", fontsize=9, zorder=4)
            right.barh(height, figures.log_loss, height=0.62, **style)
            right.text(figures.log_loss + 0.02 * most, height, number(figures.log_loss, 3), va="center", fontsize=9)
            ends = (height - 0.5, height + 0.5)
            rate = 100 * figures.majority_rate
            left.plot([rate, rate], ends, color="white", linewidth=3.2)  # so that the dashes are seen on any bar
            left.plot([rate, rate], ends, color=VERMILION, linestyle="--", linewidth=1.5)
        left.set_yticks(range(len(shown)), [_label(bar.label) for bar, _ in shown])
        left.set(xlim=(0, 122), ylim=(len(shown) - 0.4, -0.6), xlabel="accuracy, % (more is better)")
        left.set_xticks([0, 25, 50, 75, 100])
        right.set(xlim=(0, 1.25 * most), xlabel="log-loss (less is better)")
        handles = [
            figure.gca().barh(0, 0, color=BLUE, label="differentially private"),
            figure.gca().barh(0, 0, color="#cfe3f1", edgecolor=BLUE, hatch="///", label="NOT PRIVATE"),
            *left.plot([], [], color=VERMILION, linestyle="--", label="commonest class alone"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)

    words = "; ".join(f"{b.label}: accuracy {percent(m.accuracy)}, log-loss {number(m.log_loss, 3)}" for b, m in shown)
    return picture(
        draw,
        figure_id=figure_id,
        title=f"Accuracy and log-loss of {plural(len(shown), 'method')}",
        description=f"{words}.",
        height=1.5 + 0.34 * max(len(shown), 2),
        width=9.0,
    )


def picture(
    draw: Callable[[Figure], None], *, figure_id: str, title: str, description: str, height: float, width: float = WIDTH
) -> str:
    """What `draw` puts on a figure, under a title, as one `<svg>` element."""
    with drawing(figure_id):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        draw(figure)
        return svg_element(figure, figure_id=figure_id, title=printable(title), description=printable(description))


def _odds_axis(axes: Axes) -> None:
    """Mark a log-odds axis at round odds ratios: 0.5, 1, 2, 5 and so on, or powers of ten if the range is wide."""
    low, high = axes.get_xlim()
    low, high = min(low, -0.1), max(high, 0.1)
    decades = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [(digit, k) for k in decades for digit in digits if low <= math.log(digit) + k * math.log(10) <= high]
        if len(ticks) <= 9:
            break
    step = math.ceil(len(ticks) / 9)
    ticks = [tick for tick in ticks if tick[1] % step == 0]
    positions = [math.log(digit) + k * math.log(10) for digit, k in ticks]
    axes.set_xticks(positions, [f"{digit * 10.0**k:g}" if abs(k) < 6 else f"1e{k:+d}" for digit, k in ticks])
    axes.set_xlim(low, high)
    axes.set_xlabel("odds ratio (logarithmic); right of 1 raises the odds, left of 1 lowers them")


def _label(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
