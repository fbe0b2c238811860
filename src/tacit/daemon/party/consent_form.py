"""The consent form: what a data owner reads before saying yes, in plain words; what a command prints and a page shows.

Everything in it follows from the study, from the party's own policy and ledger, and from what the daemon enforces. The
same study in the method's own terms is `owner_text.study_lines`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.daemon.party.approval_check import approval_lines
from tacit.daemon.party.consent import OfferedStudy
from tacit.daemon.party.owner_text import ConsentCost, costs_of, runs_that_fit, why_not
from tacit.errors import TacitError
from tacit.federation.member.folder import MemberFolder
from tacit.federation.policy import Policy
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.studies.looks import plan_words
from tacit.studies.plain_words import plain_words
from tacit.studies.study import Study

LEAVING = (
    "You can leave at any time, with one click or one command. From the next question on nothing leaves "
    "you. What was spent stays spent, and what was added up before stays in the result."
)
_NOT_PRIVATE = "Nothing is promised about any single person here: this is NOT differentially private."


@dataclass(frozen=True, kw_only=True)
class FormPart:
    """One question that the form answers, in some sentences."""

    heading: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ConsentForm:
    """What is asked of an owner.

    Attributes:
        name: of the study.
        digest: what is consented to.
        warnings: what must be seen before anything else.
        parts: the questions and answers, in the order in which they are read.
        forbidden: why the party's own policy forbids the study; empty if it does not.
    """

    name: str
    digest: str
    warnings: tuple[str, ...]
    parts: tuple[FormPart, ...]
    forbidden: str

    def lines(self, width: int = 100) -> list[str]:
        """The form as text."""
        lines = [line for warning in self.warnings for line in textwrap.wrap(f"BEWARE: {warning}", width)]
        for part in self.parts:
            lines += [part.heading, *textwrap.wrap(part.text, width, initial_indent="  ", subsequent_indent="  ")]
        return lines


def consent_form(offered: OfferedStudy, own: MemberFolder, policy: Policy, ledger: Ledger) -> ConsentForm:
    """The form of one study for this party."""
    study, method = offered.read(), offered.method()
    words, runs = plain_words(method), offered.runs or runs_that_fit(offered, policy)
    forbidden = (offered.why_closed() if offered.state != "in" else "") or why_not(offered, policy)
    costs = costs_of(offered, runs, policy.budget, ledger, ledger.sole_account(own.identity.name))
    try:
        promise = method.guarantee
    except TacitError:  # settings that cannot be honoured: `why_not` has told which
        promise = Guarantee(epsilon=math.inf)
    looks = plan_words(study)
    parts = (
        FormPart(heading="Who asks", text=_who_asks(own)),
        FormPart(heading="Who approved it", text=_approved(offered, policy)),
        FormPart(heading="Why", text=_sentence(study.purpose)),
        FormPart(heading="Which of your columns", text=_columns(study)),
        FormPart(heading="What happens to a person's record", text=words.record),
        FormPart(heading="What leaves you, and who sees it", text=words.seen),
        FormPart(heading="What is promised", text=promise_words(promise)),
        FormPart(heading="What could go wrong", text=words.risk),
        FormPart(heading="What it costs", text=cost_words(costs, runs)),
        *((FormPart(heading="When it looks, and when it stops", text=f"How many looks: {looks}"),) if looks else ()),
        FormPart(heading="With whom you are added up", text=_with_whom(study)),
        FormPart(heading="If you leave", text=LEAVING),
    )
    return ConsentForm(
        name=study.name,
        digest=offered.digest,
        warnings=tuple(_warnings(study, promise, getattr(method, "counts_on", ""))),
        parts=parts,
        forbidden=forbidden,
    )


def promise_words(promise: Guarantee) -> str:
    """A guarantee, for somebody who has never heard of one."""
    if not promise.is_private:
        return _NOT_PRIVATE
    whom = {"record": "one record", "party": "all records of one party"}.get(promise.unit, f"one {promise.unit}")
    factor = math.exp(min(promise.epsilon, 700.0))
    odds = f"{factor:.3g}" if factor < 1e6 else "a million or more"
    told = (
        f"Whoever sees the result can raise the odds of a guess about {whom} by a factor of {odds} at most. "
        f"The short name for that is epsilon {promise.epsilon:g}: the smaller, the stricter."
    )
    if promise.delta:
        told += f" The promise may fail with a chance of 1 in {1 / promise.delta:,.0f} (delta)."
    return told


def cost_words(costs: ConsentCost, runs: int) -> str:
    """What so many runs cost of what is left."""
    allowed = "One run" if runs == 1 else f"{runs} runs together"
    spends = "spends" if runs == 1 else "spend"
    if math.isinf(costs.cost):
        return (
            "No epsilon bounds what it costs. It stands beside your budget, and only a method that your policy names "
            "may do so."
        )
    told = f"{allowed} {spends} epsilon {costs.cost:.3g} at most."
    if math.isfinite(costs.limit) and math.isfinite(costs.before):
        left = max(0.0, costs.limit - costs.before)
        told += f" You allow {costs.limit:g} in all studies, of which {left:.3g} is left now"
        told += f" and {costs.limit - costs.after:.3g} would be left then." if costs.fits else "."
    if not costs.fits:
        told += " So not all of these runs will fit: allow fewer, or raise what you allow in all."
    return f"{told} Every answer is paid for before it leaves. Once a run has answered, nothing is paid back."


def _who_asks(own: MemberFolder) -> str:
    return (
        f"The coordinator of this federation, with the key {own.pinned.coordinator.fingerprint}. "
        f"Compare the key by telephone if you have not done so yet."
    )


def _approved(offered: OfferedStudy, policy: Policy) -> str:
    told = approval_lines(offered, policy)
    return _sentence("; ".join(told)) if told else "Nobody has signed this study. Your policy says whether one must."


def _columns(study: Study) -> str:
    schema = study.schema
    told = (
        f"It predicts {schema.target.name} ({', '.join(schema.target.classes)}) from {_listed(schema.feature_names)}. "
        f"No other column is read."
    )
    return f"{told} These are left out: {_listed(schema.ignore)}." if schema.ignore else told


def _with_whom(study: Study) -> str:
    asked = study.federation
    if asked.quorum is None and asked.parties:
        return f"Exactly these parties: {_listed(asked.parties)}. You accept each of them by its fingerprint."
    if asked.quorum is None:
        return "Exactly the parties that you accept by their fingerprints, and nobody else."
    named = f" of {_listed(asked.parties)}" if asked.parties else ""
    return (
        f"At least {asked.quorum} parties{named}, and none that you have not accepted by its fingerprint. "
        f"If one of them leaves, a new run begins with the rest."
    )


def _warnings(study: Study, promise: Guarantee, counts_on: str) -> list[str]:
    found = [] if promise.is_private else [_NOT_PRIVATE]
    if promise.is_private and promise.epsilon > 10:
        found.append(f"Epsilon {promise.epsilon:g} is a weak promise: 1 is usual, 10 is weak.")
    if counts_on:
        found.append(
            _sentence(f"The promise holds only if this does not happen. {counts_on[:1].upper()}{counts_on[1:]}")
        )
    if study.federation.colluders == 0:
        found.append("If one other party tells the coordinator what it added, you have less protection than promised.")
    return found


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else f"{text}."
