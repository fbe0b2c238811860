"""Each method in plain words: what happens to a person's record, what anybody sees of it, and what could go wrong.

A data owner reads this before consenting. It says the same as the eight headings of the method's file, without their
letters. Where settings take the promise away, the form that shows these words says so above them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.errors import SettingError
from tacit.methods.method import Method


@dataclass(frozen=True, kw_only=True)
class PlainWords:
    """What an owner reads of a method.

    Attributes:
        record: what happens to a person's record.
        seen: what anybody sees of it.
        risk: what could go wrong.
    """

    record: str
    seen: str
    risk: str


def plain_words(method: Method) -> PlainWords:
    """A method in plain words."""
    if method.name not in PLAIN_WORDS:
        raise SettingError(f"method {method.name!r} is not told in plain words; add it to PLAIN_WORDS")
    return PLAIN_WORDS[method.name]


_SEALED = (
    "Your part is blurred with chance and split into three sealed envelopes, one for each center node. "
    "No envelope tells anything alone."
)
_ONLY_TOTALS = "Nobody sees your part: the center adds it to the others' parts and opens the total only."
_SIZES = "How many records you have is told, unless the study counts under add-remove."
_TWO_NODES = (
    "If two of the three center nodes work together against you, they could open your part. "
    "It is then blurred by your own noise only, which is less than promised."
)
_COLLUDERS = (
    "The noise is the sum of all parties' shares. If more parties tell what they added than the study allows for, "
    "you have less protection than promised."
)
_SPOILED = "A party with bad records makes a bad model. It learns nothing about yours by that."
_EXACT = "No noise is added. So nothing bounds what could be worked out about a person."

PLAIN_WORDS: Mapping[str, PlainWords] = {
    "private-newton": PlainWords(
        record="The record stays with you. It counts in three kinds of totals over your patients: how the measurements "
        "vary together, how they relate to the outcome, and how well trial models fit. " + _SEALED,
        seen=_ONLY_TOTALS + " That total is blurred so that no single person shows. The model is made of such totals, "
        "and everybody may see it. " + _SIZES,
        risk=_TWO_NODES + " " + _COLLUDERS,
    ),
    "averaging": PlainWords(
        record="The record stays with you. It takes part in fitting a model of your own records, on your machine. "
        + _SEALED,
        seen="Nobody sees your model. The center opens the average of all parties' models only, and that is blurred so "
        "that no single person shows. How many records you have is told.",
        risk=_TWO_NODES + " " + _COLLUDERS,
    ),
    "curator-averaging": PlainWords(
        record="The record stays with you. It takes part in fitting a model of your own records, on your machine. Your "
        "model is split into random shares that go to the other parties in sealed letters.",
        seen="Everybody sees the average of all parties' models, blurred so that no single person shows. The "
        "coordinator sees how many records you have.",
        risk="The coordinator must keep to the protocol. One that lies can read the exact average of the honest "
        "parties' models, without any noise. So your policy must name this method.",
    ),
    "noisy-descent": PlainWords(
        record="The record stays with you. In each round it is asked in which direction a trial model should move to "
        "fit it better, and these directions are added up. " + _SEALED,
        seen=_ONLY_TOTALS + " That total is blurred so that no single person shows. Everybody may see the model after "
        "each round. How many records you have is told.",
        risk=_TWO_NODES + " " + _COLLUDERS,
    ),
    "functional-mechanism": PlainWords(
        record="The record stays with you. It counts in two kinds of totals over your patients: how the measurements "
        "vary together, and how they relate to the outcome. " + _SEALED,
        seen=_ONLY_TOTALS + " That total is blurred so that no single person shows. The model is made of it, and "
        "everybody may see it. How many records you have is told.",
        risk=_TWO_NODES + " " + _COLLUDERS,
    ),
    "objective-perturbation": PlainWords(
        record="The record stays with you. It takes part in fitting a model of your own records, on your machine. "
        "Chance is mixed into that fit, so that the model is blurred before it leaves.",
        seen="The coordinator sees your blurred model. Everybody sees the average over the parties. No single person "
        "shows in either. How many records you have is told.",
        risk="Your own noise protects you, whoever else works together. Since each party adds all of it, the model is "
        "less accurate than with methods that add up first. " + _SPOILED,
    ),
    "ensemble": PlainWords(
        record="The record stays with you. It takes part in fitting a model of your own records, which votes on rows "
        "that are public. " + _SEALED,
        seen=_ONLY_TOTALS
        + " That is a total of votes, blurred so that not even one whole party shows. A model is made "
        "of it, which everybody may see.",
        risk=_TWO_NODES
        + " If the study asks for release = minimiser, the coordinator sees your votes or your model as "
        "they are.",
    ),
    "hypothesis-transfer": PlainWords(
        record="The record stays with you. It takes part in fitting a model of your own records, and in a short "
        "description of what your records are like on average. Both are blurred before they leave.",
        seen="Everybody may see your blurred model and your blurred description. No single person shows in them. How "
        "many records you have is told.",
        risk="Your own noise protects you, whoever else works together. The description can tell that your patients "
        "differ from others' patients as a group.",
    ),
    "ternary-descent": PlainWords(
        record="The record stays with you. At times some of your records, drawn by lot, say in which direction "
        "a trial model should move. That is blurred, and only a sign for each part of the model leaves.",
        seen="Everybody may see these signs and the model. No single person shows in them. How many records you have "
        "is not told.",
        risk="Your own noise protects you, whoever else works together. " + _SPOILED,
    ),
    "privlogit": PlainWords(
        record="The record stays with you. It counts in exact totals over your patients. Your part is split into three "
        "sealed envelopes, one for each center node. No envelope tells anything alone.",
        seen="Nobody sees your part. What is opened are exact steps of a fit over all parties' records together, and "
        "the exact model at the end. How many records you have is told.",
        risk=_EXACT + " With very few records at two parties, one can work out the other's. Two center nodes that work "
        "together see your exact part.",
    ),
    "secure-newton": PlainWords(
        record="The record stays with you. It counts in exact totals over your patients. Your part is split into three "
        "sealed envelopes, one for each center node. No envelope tells anything alone.",
        seen="Nobody sees your part. What is opened are exact steps of a fit over all parties' records together, and "
        "the exact model at the end. How many records you have is told.",
        risk=_EXACT + " With very few records at two parties, one can work out the other's. Two center nodes that work "
        "together see your exact part.",
    ),
    "pooled": PlainWords(
        record="The record stays with you. It counts in exact totals over your patients, and these are sent to the "
        "coordinator as they are.",
        seen="The coordinator sees your exact totals, again and again, for different trial models. Everybody may see "
        "the exact model.",
        risk=_EXACT + " With few records your totals give records away. So your policy must name this method.",
    ),
    "local": PlainWords(
        record="The record stays with you. It takes part in fitting an exact model of your own records, and that model "
        "is sent to the coordinator as it is.",
        seen="The coordinator sees your exact model and how certain it is. So does everybody who gets it.",
        risk=_EXACT + " Whoever knows all your records but one could work out the last. So your policy must name this "
        "method.",
    ),
}
