"""Table 3.1 and figure 3.2: what one iteration of ternary descent costs, by the document's formulas and by right ones.

The document amplifies each uploaded coordinate by the mini-batch ratio q, as if each had a batch of its own. All
coordinates share one batch. So the whole iteration is amplified at once: choosing n coordinates costs 2 n epsilon and
their fresh values n epsilon more, and a batch of ratio q makes ln(1 + q (exp(3 n epsilon) - 1)) of it.
"""

from __future__ import annotations

import math
from functools import partial

from tacit.methods.ternary.schedule import noise_multiplier, sampled_rounds
from tacit.privacy.accounting import epsilon_of
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

DELTA = 2.0**-30
ITERATIONS = 100
ROWS = (  # epsilon, q, n, and the two columns as they are printed
    (0.1, 0.01, 1431, "3.01", "0.37"),
    (0.1, 0.01, 2862, "6.02", "0.52"),
    (0.1, 0.05, 1431, "15.01", "1.88"),
    (0.1, 1.0, 14312, "2862.4", "410.1"),
    (0.5, 0.01, 1431, "18.50", "2.35"),
    (0.5, 0.01, 2862, "37.01", "3.39"),
    (0.5, 0.05, 1431, "91.35", "13.97"),
    (0.5, 1.0, 14312, "14312.4", "9830.1"),
)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
RATIOS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


def amplified(epsilon: float, q: float) -> float:
    """Lemma 3.3.1, ln(1 + q (exp(epsilon) - 1)), for any epsilon."""
    if epsilon < 700:
        return math.log1p(q * math.expm1(epsilon))
    return epsilon + math.log(q)  # what is left out is below exp(-700)


def printed_costs(epsilon: float, q: float, n: int) -> tuple[float, float]:
    """Theorem 3.3.2: basic and advanced composition of n coordinates, each amplified by itself."""
    each = amplified(epsilon, q)
    advanced = math.sqrt(4 * n * math.log(1 / DELTA)) * each + 2 * n * each * math.expm1(each)
    return 2 * n * each, advanced


def right_costs(epsilon: float, q: float, n: int) -> tuple[float, float]:
    """The same with one batch for all 3 n noises: pure, and by advanced composition at the same delta.

    Composing m = 3 n epsilon-private noises costs sqrt(2 m ln(1/d)) epsilon + m epsilon (exp(epsilon) - 1) but for d;
    a batch of ratio q turns d into q d. So d = delta / q here. The pure cost is taken where it is smaller.
    """
    m = 3 * n
    pure = m * epsilon
    advanced = math.sqrt(2 * m * math.log(q / DELTA)) * epsilon + m * epsilon * math.expm1(epsilon)
    return amplified(pure, q), amplified(min(pure, advanced), q)


def table_row(*, row: int, sound: bool, seed: int) -> dict[str, float]:
    """One row: the document's two columns, the right ones, and the sound run that costs as much as is printed."""
    epsilon, q, n, _, advanced = ROWS[row]
    basic_again, advanced_again = printed_costs(epsilon, q, n)
    pure, approximate = right_costs(epsilon, q, n)
    found = {"basic": basic_again, "advanced": advanced_again, "right_pure": pure, "right_advanced": approximate}
    if sound:
        sigma = noise_multiplier(float(advanced), DELTA, q, 1)
        found["sigma"] = sigma
        found["sound_one"] = epsilon_of(sampled_rounds(sigma, q, 1), DELTA, relation="add-remove")
        found["sound_all"] = epsilon_of(sampled_rounds(sigma, q, ITERATIONS), DELTA, relation="add-remove")
    return found


def table_cells(quick: bool) -> list[ResultCell]:
    """One cell a row. Without a batch, what is printed is no epsilon that a sound run should aim at."""
    sound = [row for row, (_, q, *_) in enumerate(ROWS) if q < 1][: 2 if quick else None]
    return [ResultCell(f"row-{row + 1}", table_row, {"row": row, "sound": row in sound}) for row in range(len(ROWS))]


def _digits(value: float, printed: str) -> str:
    """A number with as many decimals as the document prints."""
    return f"{value:.{len(printed.partition('.')[2])}f}"


def summarise_table(values: Values) -> Summary:
    """Printed, made again, and right, side by side."""
    header = [
        *("epsilon", "q", "n", "basic, printed", "basic, formula", "advanced, printed", "advanced, formula"),
        *("right, pure", f"right, delta {DELTA:.2g}", "sound: sigma", "one iteration", f"{ITERATIONS} iterations"),
    ]
    lines = []
    for row, (epsilon, q, n, basic, advanced) in enumerate(ROWS):
        cell = values[f"row-{row + 1}"]
        sound = [f"{cell[key]:.3g}" if key in cell else "-" for key in ("sigma", "sound_one", "sound_all")]
        again = [basic, _digits(cell["basic"], basic), advanced, _digits(cell["advanced"], advanced)]
        right = [f"{cell['right_pure']:.1f}", f"{cell['right_advanced']:.1f}"]
        lines.append([f"{epsilon:g}", f"{q:g}", f"{n}", *again, *right, *sound])
    caption = (
        "Epsilon of one iteration. *Right* amplifies the batch as a whole and counts the fresh noise. *Sound* is our "
        "method with the noise sigma at which one iteration costs the printed advanced epsilon, by privacy loss "
        f"distributions, and what {ITERATIONS} such iterations cost:"
    )
    return Summary([NumberTable(header, lines, caption)])


def _printed_again(values: Values) -> Finding:
    """Whether the formulas give the numbers of each column to a unit of the last printed digit."""
    right: dict[str, list[bool]] = {"basic": [], "advanced": []}
    off = []
    for row, (_, _, _, basic, advanced) in enumerate(ROWS):
        for column, printed in (("basic", basic), ("advanced", advanced)):
            value = values[f"row-{row + 1}"][column]
            right[column].append(abs(value - float(printed)) <= 1.01 * 10.0 ** -len(printed.partition(".")[2]))
            if not right[column][-1]:
                off.append(f"{printed} is printed and the formula gives {_digits(value, printed)}")
    n_right = sum(map(sum, right.values()))
    why = f"{n_right} of 16 numbers follow from theorem 3.3.2 to a unit of the last printed digit"
    return judged([all(column) for column in right.values()], "; ".join([why, *off]))


def _is_the_cost(values: Values) -> Finding:
    """Whether the printed costs are what an iteration costs."""
    parts = []
    for row, (_, _, _, basic, advanced) in enumerate(ROWS):
        cell = values[f"row-{row + 1}"]
        parts += [cell["right_pure"] <= 1.01 * float(basic), cell["right_advanced"] <= 1.01 * float(advanced)]
    first = values["row-1"]
    return judged(
        parts,
        f"row 1 costs {first['right_pure']:.1f} where 3.01 is printed, and {first['right_advanced']:.1f} at delta "
        "2^-30 where 0.37 is printed: all coordinates share one batch, and the fresh noise is not counted",
    )


def _sampling_saves(values: Values) -> Finding:
    """Whether sampling saves half of the budget at least, by the right costs, and whether selecting does."""
    right = {row: values[f"row-{row + 1}"]["right_pure"] for row in range(len(ROWS))}
    printed = {row: values[f"row-{row + 1}"]["basic"] for row in range(len(ROWS))}
    selected = right[3] * ROWS[0][2] / ROWS[3][2]  # what the coordinates of row 1 cost without a batch
    return judged(
        [right[0] <= 0.5 * selected, selected <= 0.5 * right[3]],
        f"by the formula, row 1 costs {printed[0] / printed[3]:.2%} of row 4. Rightly, a tenth of the gradients costs "
        f"{selected / right[3]:.0%}, and a batch of 1 % leaves {right[0] / selected:.0%} of that: it takes ln(1/q) off "
        "an epsilon that is large, and no more (half counts as a lot)",
    )


TABLE_3_1 = Reproduction(
    name="wang-table-3.1",
    title="Privacy budget of one iteration of ternary descent",
    setting=(
        "Formulas alone: theorem 3.3.2 as it is printed, delta = 2^-30, and the right cost of the same iteration. "
        "14,312 parameters; 10 %, 20 % or all of them are uploaded."
    ),
    numbers=(
        *(Number(f"row {k + 1}, basic", float(row[3])) for k, row in enumerate(ROWS)),
        *(Number(f"row {k + 1}, advanced", float(row[4])) for k, row in enumerate(ROWS)),
    ),
    cells=table_cells,
    summarise=summarise_table,
    claims=(
        Claim("One iteration consumes the budgets of the table.", _is_the_cost),
        Claim("The sixteen numbers follow from theorem 3.3.2.", _printed_again),
        Claim("Sampling a batch and uploading a part of the gradients save a lot of the budget.", _sampling_saves),
    ),
)


def lemma_line(*, q: float, epsilons: list[float], seed: int) -> dict[str, list[float]]:
    """The lemma's epsilon at a ratio, and what randomised response on a batch truly gives, both ways."""
    either_way = []
    for epsilon in epsilons:
        up = 1 - q + q * math.exp(epsilon)  # a record more: the likelier answer of randomised response
        down = 1 / (1 - q + q * math.exp(-epsilon))  # and the less likely one
        either_way.append([math.log(up), math.log(down)])
    return {
        "lemma": [amplified(epsilon, q) for epsilon in epsilons],
        "up": [up for up, _ in either_way],
        "down": [down for _, down in either_way],
    }


def figure_cells(quick: bool) -> list[ResultCell]:
    """One cell a ratio."""
    return [ResultCell(f"q-{q:g}", lemma_line, {"q": q, "epsilons": list(EPSILONS)}) for q in RATIOS]


def summarise_figure(values: Values) -> Summary:
    """The lemma as a table and as curves."""
    lines = [[f"{q:g}", *(f"{value:.4g}" for value in values[f"q-{q:g}"]["lemma"])] for q in RATIOS]
    header = ["q", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    caption = "Epsilon after sampling a batch of ratio q, ln(1 + q (exp(epsilon) - 1)):"
    return Summary([NumberTable(header, lines, caption)], {"wang-figure-3.2.svg": partial(_draw_lemma, values)})


def _draw_lemma(values: Values) -> str:
    over_epsilon = {f"q = {q:g}": PlotLine(EPSILONS, values[f"q-{q:g}"]["lemma"]) for q in RATIOS}
    chosen = [EPSILONS.index(e) for e in (0.5, 2.0, 6.0, 10.0)]
    over_q = {
        f"epsilon = {EPSILONS[k]:g}": PlotLine(RATIOS, [values[f"q-{q:g}"]["lemma"][k] / EPSILONS[k] for q in RATIOS])
        for k in chosen
    }
    panels = [
        Panel(lines=over_epsilon, x="epsilon without sampling", y="epsilon with sampling"),
        Panel(lines=over_q, x="mini-batch ratio q", y="share of epsilon that is left"),
    ]
    return panels_plot(panels, figure_id="wang-figure-3.2", title="What sampling a batch saves (lemma 3.3.1)")


def _lemma_is_right(values: Values) -> Finding:
    """Whether a mechanism that uses up its epsilon stays within the lemma, both ways, and reaches it."""
    parts, worst = [], 0.0
    for q in RATIOS:
        cell = values[f"q-{q:g}"]
        for lemma, up, down in zip(cell["lemma"], cell["up"], cell["down"], strict=True):
            parts.append(max(up, down) <= lemma * (1 + 1e-4))
            worst = max(worst, max(up, down) / lemma)
    why = f"randomised response on a batch loses at most {worst:.4f} of it, with a record more or a record less"
    return judged([all(parts), worst > 0.999], why)


def _saves(values: Values) -> Finding:
    """Whether savings are linear in q at small epsilon and vanish at large."""
    index = {epsilon: k for k, epsilon in enumerate(EPSILONS)}
    left = {(q, e): values[f"q-{q:g}"]["lemma"][index[e]] / e for q in RATIOS for e in (EPSILONS[0], EPSILONS[-1])}
    linear = all(abs(left[q, EPSILONS[0]] / q - 1) < 0.06 for q in RATIOS)
    vanish = left[0.5, EPSILONS[-1]] > 0.9 and left[0.05, EPSILONS[-1]] > 0.6
    why = (
        f"at epsilon 0.1 a batch of 1 % leaves {left[0.01, 0.1]:.2%} and one of half the records "
        f"{left[0.5, 0.1]:.1%}; at epsilon 10 they leave {left[0.01, 10.0]:.0%} and {left[0.5, 10.0]:.0%}"
    )
    return judged([linear, vanish], why)


FIGURE_3_2 = Reproduction(
    name="wang-figure-3.2",
    title="What sampling a mini-batch saves (lemma 3.3.1)",
    setting="The lemma's formula, and randomised response on a sampled batch, whose loss is known exactly.",
    numbers=(Number("the curves' values", None, "not given"),),
    cells=figure_cells,
    summarise=summarise_figure,
    claims=(
        Claim("An epsilon-private algorithm on a batch is ln(1 + q (exp(epsilon) - 1))-private.", _lemma_is_right),
        Claim("When epsilon is small the savings are almost linear in q; when it is large they vanish.", _saves),
    ),
)
