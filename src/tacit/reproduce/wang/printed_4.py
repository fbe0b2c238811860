"""Tables 4.2 and 4.3 as they are printed: test accuracy with 5 % labelled target samples."""

from __future__ import annotations

METHODS = ("WEAK", "SOURCE", "AVERAGE", "SOFT", "DPHTL", "TARGET")
EPSILONS = ("0.1", "0.5", "1", "3", "5", "inf")

AMAZON: dict[tuple[float, ...], str] = {
    (0.25, 0.0, 0.75, 0.0): """
        .650 .523 .563 .554 .555 .780
        .650 .574 .623 .625 .614 .780
        .650 .629 .681 .676 .670 .780
        .650 .723 .751 .744 .755 .780
        .650 .753 .767 .754 .773 .780
        .650 .770 .776 .764 .788 .780""",
    (0.0, 0.5, 0.0, 0.5): """
        .718 .521 .586 .549 .575 .834
        .718 .598 .662 .646 .657 .834
        .718 .672 .729 .726 .734 .834
        .718 .786 .801 .786 .814 .834
        .718 .808 .815 .792 .829 .834
        .718 .823 .818 .794 .838 .834""",
}
NEWSGROUPS: dict[tuple[float, ...], str] = {
    (0.0, 0.6, 0.2, 0.0, 0.2): """
        .735 .537 .639 .533 .636 .848
        .735 .651 .740 .659 .732 .848
        .735 .740 .777 .768 .779 .848
        .735 .821 .813 .784 .832 .848
        .735 .832 .819 .777 .840 .848
        .735 .840 .824 .771 .853 .848""",
    (0.5, 0.0, 0.0, 0.5, 0.0): """
        .704 .540 .588 .533 .585 .792
        .704 .602 .671 .628 .664 .792
        .704 .654 .714 .725 .716 .792
        .704 .745 .747 .734 .765 .792
        .704 .771 .751 .730 .778 .792
        .704 .781 .764 .728 .788 .792""",
    (0.2, 0.0, 0.3, 0.3, 0.2): """
        .703 .544 .609 .547 .608 .790
        .703 .625 .703 .657 .694 .790
        .703 .688 .741 .752 .742 .790
        .703 .753 .773 .748 .779 .790
        .703 .765 .775 .742 .784 .790
        .703 .779 .782 .738 .791 .790""",
}
PRINTED: dict[str, dict[tuple[float, ...], str]] = {"amazon_sentiment": AMAZON, "newsgroups20": NEWSGROUPS}


def cells(data: str) -> dict[tuple[int, str, str], float]:
    """Every printed number, by the mixture's place, epsilon and method."""
    found = {}
    for m, text in enumerate(PRINTED[data].values()):
        lines = [line.split() for line in text.strip().splitlines()]
        for epsilon, line in zip(EPSILONS, lines, strict=True):
            for method, value in zip(METHODS, line, strict=True):
                found[m, epsilon, method] = float(value)
    return found
