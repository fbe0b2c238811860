"""Which method for what: each in two lines, for whoever has to choose one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MethodChoice:
    """What a method is, and when to use it; a sentence each."""

    what: str
    when: str


METHOD_CHOICES: Mapping[str, MethodChoice] = {
    "private-newton": MethodChoice(
        what="Private: nothing but noisy sums over all parties is opened. Gives intervals and p-values.",
        when="you want a promise and a regression table. Begin here.",
    ),
    "privlogit": MethodChoice(
        what="Exact: the fit of all records together, on secret shares; NOT PRIVATE.",
        when="the parties may know the exact model, but no other party's sums.",
    ),
    "secure-newton": MethodChoice(
        what="Exact like privlogit, by the document's slower steps; NOT PRIVATE.",
        when="you want to compare with the document. Else take privlogit.",
    ),
    "pooled": MethodChoice(
        what="Exact: every party hands over its own sums; NOT PRIVATE.",
        when="all data are yours, or you want to know what privacy costs.",
    ),
    "local": MethodChoice(
        what="One party's own model, fitted alone; NOT PRIVATE.",
        when="you want to know what joining would bring you.",
    ),
    "averaging": MethodChoice(
        what="Private: the average of the parties' own models, in one round. No intervals.",
        when="there are few rounds to spare, and each party has many records.",
    ),
    "curator-averaging": MethodChoice(
        what="Private towards outsiders: an average by the document's protocol, with noise that nobody knows.",
        when="parties must not know each other's sizes. Its coordinator must keep to the protocol.",
    ),
    "objective-perturbation": MethodChoice(
        what="Private: each party adds its own noise to its own fit. No center is needed.",
        when="parties trust nobody at all, a center of three nodes included.",
    ),
    "functional-mechanism": MethodChoice(
        what="Private: the loss as a quadratic, opened once with noise. One round, no fits at the parties.",
        when="a party can do no more than add up its records.",
    ),
    "noisy-descent": MethodChoice(
        what="Private: gradient descent with noisy sums, round by round.",
        when="there are too many columns for the square matrices of private-newton.",
    ),
    "ensemble": MethodChoice(
        what="Private: parties' own models of any kind vote on public records, and one model learns from the votes.",
        when="there are thousands of small parties, such as phones, and public records without labels.",
    ),
    "hypothesis-transfer": MethodChoice(
        what="Private: noisy models of other parties, weighed for one that has few labels.",
        when="one party is unlike the others, and its model is the one that counts.",
    ),
    "ternary-descent": MethodChoice(
        what="Private: updates of a neural network, each number sent as -1, 0 or 1.",
        when="the model is a network, and lines are slow.",
    ),
}
