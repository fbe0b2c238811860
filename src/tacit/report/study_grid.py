"""The tables that say which study a report is of, what its columns are, and how well the model fits."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.report.facts import RunFacts
from tacit.report.grid import Grid
from tacit.report.identity import LEVELS
from tacit.report.number import UNKNOWN, count, number, p_value
from tacit.report.plain import plain_text, printable

MOST_NAMES = 12
LEFT_TO_THE_METHOD = "left to the method"


def identity_grid(facts: RunFacts) -> Grid:
    """By what this report can be told from another: study, purpose, digest, date, version, who took part."""
    study = facts.study
    rows = (
        [] if study is None else [("Study", study.name), ("Purpose", study.purpose), ("Study's digest", study.digest)]
    )
    rows += [("Finished", when(facts))] if facts.finished else []
    rows += [("Software", f"Tacit {facts.version}")] if facts.version else []
    rows += [("Modelled", facts.modelled)]
    if facts.parties:
        rows.append(("Took part", listed([party.name for party in facts.parties])))
    columns = ("fact", "value")
    told = tuple((name, printable(value)) for name, value in rows)
    return Grid(title="This study", columns=columns, rows=told, left=frozenset(columns))


def columns_grid(facts: RunFacts) -> Grid:
    """What was declared of each feature before any record was read, and what its coefficients compare."""
    rows = tuple(
        (printable(one.name), printable(one.values), printable(one.compared), printable(one.missing))
        for one in facts.columns
    )
    columns = ("feature", "declared values", "a coefficient is for", "an empty value is")
    note = "Bounds and levels are public facts of the field, fixed before any record was read." if rows else ""
    return Grid(title="Columns", columns=columns, rows=rows, left=frozenset(columns), note=note)


def reference_note(facts: RunFacts) -> str:
    """Which levels the table compares with; empty if there are none."""
    levels = [f"{one.name} = {one.reference}" for one in facts.columns if one.kind == LEVELS and one.reference]
    return f"Reference levels: {printable(listed(levels))}." if levels else ""


def joint_grid(facts: RunFacts) -> Grid:
    """A test of each feature that has several coefficients."""
    rows = []
    for test in facts.joint:
        told = test.why if test.statistic is None else number(test.statistic)
        p = "" if test.p is None else p_value(test.p)
        rows.append((printable(test.feature), told, count(test.degrees), p))
    note = "Does the feature matter at all? All its coefficients are tested at once (Wald)."
    if facts.guarantee is not None and facts.guarantee.is_private:
        note += " The noise that was added for privacy is counted."
    return Grid(
        title="Joint tests",
        columns=("feature", "chi-squared", "df", "P>chi2"),
        rows=tuple(rows),
        left=frozenset({"feature"}),
        note=note if rows else "",
    )


def fit_grid(facts: RunFacts) -> Grid | None:
    """How well the model fits, held against one without features; None where no likelihood is known."""
    fit = facts.fit
    if fit is None or fit.log_likelihood is None:
        return None
    columns, cells = ["log-likelihood", "AIC"], [number(fit.log_likelihood, 6), number(fit.aic, 6)]
    if fit.ratio_statistic is None:
        note = "No likelihood-ratio test: the class counts, which it needs, were not opened."
    else:
        columns += ["without features", "LR chi-squared", "df", "P>chi2", "McFadden R2", "Nagelkerke R2"]
        cells += [number(fit.null_log_likelihood, 6), number(fit.ratio_statistic), count(fit.degrees)]
        cells += [p_value(fit.ratio_p), _share(fit.mcfadden), _share(fit.nagelkerke)]
        note = "The likelihood-ratio test asks whether the features together predict anything."
        if facts.settings.get("l2"):
            note += " The fit is penalised, so that the test errs on the safe side."
    return Grid(title="Fit", columns=tuple(columns), rows=(tuple(cells),), left=frozenset(), note=note)


def settings_grid(facts: RunFacts) -> Grid:
    """The settings of the method, by their Python names; of those left to the method, what the run made of them."""
    rows = []
    for name, value in sorted(facts.settings.items()):
        told = plain_text(value)
        if value is None:
            chosen = facts.effective.get(name)
            told = LEFT_TO_THE_METHOD if chosen is None else f"{plain_text(chosen)} ({LEFT_TO_THE_METHOD})"
        rows.append((printable(name), told))
    columns = ("setting", "value")
    return Grid(title="Settings", columns=columns, rows=tuple(rows), left=frozenset(columns))


def citation(facts: RunFacts) -> str:
    """How to cite the run: software, method, study and day."""
    version = f" {facts.version}" if facts.version else ""
    words = f"Fitted with Tacit{version}, method {printable(facts.method)}"
    if facts.calibration:
        words += f", calibration \u201c{facts.calibration}\u201d"
    if facts.study is not None:
        words += f". Study \u201c{printable(facts.study.name)}\u201d, digest {facts.study.digest[:16]}"
    return words + (f", {facts.finished[:10]}." if facts.finished else ".")


def when(facts: RunFacts) -> str:
    """The time at which the run finished, for a person."""
    day, _, clock = facts.finished.partition("T")
    return f"{day}, {clock[:5]} UTC" if clock else day


def listed(names: Sequence[str]) -> str:
    """Names in a line, the first of many."""
    more = len(names) - MOST_NAMES
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MOST_NAMES])} and {more:,} more"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"
