from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tacit.report import CoefficientRow, Metrics, Report, RunFacts
from tacit.report.text import (
    display_width,
    spending_text,
    summary_text,
    traffic_text,
    who_saw_what_text,
)

EXACT = """\
NOT PRIVATE: no epsilon bounds what the result tells about a single record.
                                     Logistic regression: PrivLogit
=======================================================================================================
Method:         privlogit                                                         Records:          597
Target:         disease (no, yes)                                                 Parties:            2
Log-likelihood: -271.346                                                              AIC:      550.691
Modelled:       the odds of disease = yes against no
Guarantee:      NOT PRIVATE
=======================================================================================================
term                 coef  std err       z   P>|z|       low      high  odds ratio  odds low  odds high
-------------------------------------------------------------------------------------------------------
(intercept)        -1.234   0.3010  -4.100  <0.001    -1.824   -0.6440      0.2911    0.1614     0.5252
age               0.03120  0.01210   2.579   0.010  0.007484   0.05492       1.032     1.008      1.056
chest_pain=none     1.872   0.2440   7.672  <0.001     1.394     2.350       6.501     4.030      10.49
max_heart_rate   -0.02130  0.01180  -1.805   0.071  -0.04443  0.001828      0.9789    0.9565      1.002
=======================================================================================================
The columns low and high are the ends of the estimate's own 95 % interval.
Note: 12 values in column age were outside its bounds and were clipped
"""

PRIVATE = """\
                           Logistic regression: PrivateNewton
========================================================================================
Method:         private-newton (sound)                             Records:          597
Target:         disease (no, yes)                                  Parties:            2
Log-likelihood: -                                                      AIC:            -
Modelled:       the odds of disease = yes against no
Guarantee:      epsilon = 1, delta = 1e-06 per record, replace-one
========================================================================================
term                                                                    coef  odds ratio
----------------------------------------------------------------------------------------
(intercept)                                                           -1.234      0.2911
age                                                                  0.03120       1.032
chest_pain=none                                                        1.872       6.501
max_heart_rate                                                      -0.02130      0.9789
========================================================================================
No standard errors: the usual ones ignore the noise that was added for privacy.
Computing them would be a further release about the records.
"""


def test_the_summary_of_an_exact_fit_is_pinned(exact_facts: RunFacts) -> None:
    assert summary_text(exact_facts) == EXACT


def test_the_summary_of_a_private_fit_leaves_out_standard_errors_and_says_why(private_facts: RunFacts) -> None:
    assert summary_text(private_facts) == PRIVATE


def test_not_private_stands_before_any_number(private_facts: RunFacts) -> None:
    for facts in (replace(private_facts, seeded=True), replace(private_facts, calibration="paper")):
        lines = summary_text(facts).splitlines()
        assert lines[0].startswith("NOT PRIVATE: ")
        assert "NOT PRIVATE (claimed: epsilon = 1, delta = 1e-06 per record" in summary_text(facts)
        assert "what was charged, not what holds" in spending_text(facts)
        assert "An attacker who knows" not in Report(facts).text()


def test_several_classes_have_a_column(private_facts: RunFacts, row: Callable[..., CoefficientRow]) -> None:
    rows = (row("age", 0.5, None, "mild"), row("age", -0.25, None, "severe"))
    lines = summary_text(replace(private_facts, classes=("none", "mild", "severe"), coefficients=rows)).splitlines()
    assert [line.split() for line in lines if line.startswith(("class", "mild", "severe"))] == [
        ["class", "term", "coef", "odds", "ratio"],
        ["mild", "age", "0.5000", "1.649"],
        ["severe", "age", "-0.2500", "0.7788"],
    ]


def test_a_model_without_coefficients_says_so(private_facts: RunFacts) -> None:
    assert "This model has no table of coefficients." in summary_text(replace(private_facts, coefficients=()))


def test_every_line_of_the_table_has_one_width_in_any_script(
    exact_facts: RunFacts, row: Callable[..., CoefficientRow]
) -> None:
    rows = (row("年齢", 0.5, 0.1), row("e\u0301ge", 0.5, 0.1), row("x" * 90, -1.0, 0.1))
    lines = summary_text(replace(exact_facts, coefficients=rows, notices=())).splitlines()
    start = lines.index(next(line for line in lines if line.startswith("term")))
    table = lines[start : lines.index(lines[start - 1], start) + 1]
    assert len(table) == 6
    assert len({display_width(line) for line in table}) == 1


def test_a_name_cannot_move_the_cursor(exact_facts: RunFacts, row: Callable[..., CoefficientRow]) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\r\nage"
    facts = replace(
        exact_facts,
        target=evil,
        classes=(evil, "yes"),
        coefficients=(row(evil, 1.0, 0.1),),
        parties=(replace(exact_facts.parties[0], name=evil),),
        notices=(evil,),
        settings={evil: evil},
        headings={"Trust": evil},
    )
    text = Report(facts).text()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "\\x1b[2J" in text


def test_spending_and_traffic(exact_facts: RunFacts, private_facts: RunFacts) -> None:
    assert spending_text(private_facts).splitlines()[3].split() == [
        "cleveland",
        "303",
        "1",
        "1e-06",
        "9",
        "18.0",
        "KiB",
    ]
    assert "NOT PRIVATE" in spending_text(exact_facts)
    silent = replace(exact_facts, parties=(replace(exact_facts.parties[0], n_records=None),))
    assert "that party does not tell" in spending_text(silent)
    assert " ".join(traffic_text(exact_facts).splitlines()[3].split()) == "9 36 36.0 KiB 9.0 KiB 45.0 KiB 1.5 s"


def test_who_saw_what_keeps_the_order_of_the_headings(exact_facts: RunFacts) -> None:
    shuffled = dict(reversed(list(exact_facts.headings.items())))
    lines = who_saw_what_text(shuffled).splitlines()
    words = [line.split()[0] for line in lines[2:] if not line.startswith(" ")]
    assert words == ["Parties", "Trust", "Travels", "Revealed", "Privacy", "Assumes", "Cost", "Paper"]


def test_the_whole_text_has_every_part(exact_facts: RunFacts, metrics: Metrics) -> None:
    text = Report(exact_facts, {"held-out records": metrics}).text()
    titles = [
        "Logistic regression",
        "How good it is",
        "What was spent, by whom",
        "What travelled",
        "Who saw what",
        "Settings",
    ]
    assert [text.index(title) for title in titles] == sorted(text.index(title) for title in titles)
