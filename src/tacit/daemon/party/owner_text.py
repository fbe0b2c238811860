"""What a party's owner reads: studies, the policy and the ledger, in plain words."""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tacit.daemon import DEFAULT_RUNS
from tacit.daemon.party.approval_check import approval_lines, why_not_approved, why_replaced
from tacit.daemon.party.consent import OfferedStudy
from tacit.errors import TacitError
from tacit.federation.member.folder import MemberFolder
from tacit.federation.policy import Policy
from tacit.privacy.event import why_not_private
from tacit.privacy.filter import least_limit
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Budget, Ledger
from tacit.report.svg import drawing, svg_element
from tacit.studies.content import FILE_SETTINGS, unstated
from tacit.studies.looks import plan_words
from tacit.studies.run import method_of
from tacit.studies.study import Study

_STATES = {"in": "you take part", "out": "you opted out", "": "you have not decided"}


def study_lines(offered: OfferedStudy, folder: MemberFolder, policy: Policy) -> list[str]:
    """One study: who asks, for what, which columns, which method, what leaves, what it costs, who sees what."""
    study, method = offered.read(), offered.method()
    told = method.headings()
    schema = study.schema
    runs = offered.runs or runs_that_fit(offered, policy)
    facts = {
        "Asked by": f"the coordinator, key {folder.pinned.coordinator.fingerprint}",
        "Purpose": study.purpose,
        "Predicts": f"{schema.target.name} ({', '.join(schema.target.classes)})",
        "Columns": ", ".join(schema.feature_names),
        **({"Persons": _persons(study.person)} if study.person is not None else {}),
        "Method": method.name,
        "Costs": f"{_promised(offered).plain_words()} {_for_what(study, runs)}",
        **({"Looks": words} if (words := plan_words(study)) else {}),
        **({"Files": words} if (words := _files(study)) else {}),
        **({} if offered.offer is None else {"Offer": _offer(offered.offer)}),
        "Leaves": told["Travels"],
        "Is seen": told["Revealed"],
        "Trusts": told["Trust"],
        **({"Beware": f"{counts_on}."} if (counts_on := getattr(method, "counts_on", "")) else {}),
        "Approved": "; ".join(approval_lines(offered, policy)) or "by nobody who signed it",
        "Colluders": _colluders(study.federation.colluders),
        "Quorum": _quorum(offered, folder.identity.name, is_private=method.guarantee.is_private),
        "Policy": why_not(offered, policy) or "your policy allows it",
        "Digest": offered.digest,
    }
    if closed := offered.why_closed():
        facts = {"Over": closed, **facts}
    lines = [f"{study.name}: {_STATES[offered.state]} (seen {time.strftime('%Y-%m-%d', time.gmtime(offered.seen))})"]
    for label, text in facts.items():
        lines += textwrap.wrap(" ".join(text.split()), 100, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12)
    return lines


def _for_what(study: Study, runs: int) -> str:
    """What the cost is the cost of."""
    if study.stop is None:
        return f"That is for one run; {runs} are allowed."
    return f"That is for all looks together; a look that loses a party may begin again, {runs} times in all."


def _files(study: Study) -> str:
    """The files that the study names, with the content that is consented to."""
    named = [key for key in FILE_SETTINGS if key in study.content]
    return "; ".join(f"{key} = {study.settings[key]}, SHA-256 {study.content[key]}" for key in named)


def _promised(offered: OfferedStudy) -> Guarantee:
    """What one run promises this party: for what it offers, if that is less than is asked."""
    return method_of(offered.read(), epsilon=offered.offer).guarantee


def _offer(epsilon: float) -> str:
    return f"you offer epsilon {epsilon:g}, less than is asked: your records count less, and everybody is told so"


def _persons(column: str) -> str:
    """How a person's records are told apart from another's."""
    return (
        f"your column {column} says whose a record is. It stays here; all records of one person count as one, and the "
        f"number of persons is told in place of that of records"
    )


def _colluders(stated: int | None) -> str:
    """How many parties may pool what they know before the noise is less than promised."""
    if stated == 0:
        return "NONE: if one other party tells the coordinator what it added, you have less protection than promised"
    n = 1 if stated is None else stated
    return f"the promise holds though {n} of the other parties tell{'s' if n == 1 else ''} the coordinator all it knows"


def _quorum(offered: OfferedStudy, own: str, *, is_private: bool) -> str:
    """With whom a run is, as the daemon enforces it."""
    asked = offered.read().federation
    accepted = {*offered.sum_group, own} if offered.state == "in" else set()
    if asked.quorum is None:
        named = sorted(asked.parties or accepted)
        who = f"these parties, {', '.join(named)}," if named else "all whom you accept when you opt in"
        return f"all: every run is with {who} and with nobody else"
    who = f" ({', '.join(sorted(accepted or asked.parties or ()))})" if accepted or asked.parties else ""
    told = f"{asked.quorum}: a run is with so many or more of those whom you accept{who}"
    if not is_private:
        told += "; the parties of the first run that you answer are those of every later one"
    if not asked.dropouts:
        return told
    return (
        f"{told}; a round goes on without up to {asked.dropouts} of those that began, and with {asked.quorum} or more"
    )


def why_not(offered: OfferedStudy, policy: Policy) -> str:
    """Why the policy forbids a study; empty if it does not. Looks at no record."""
    study, method = offered.read(), offered.method()
    try:
        promised = _promised(offered)
    except TacitError as error:
        return str(error)
    if silent := unstated(study):
        return f"it names the file {silent} = {study.settings[silent]!r} and does not state its content"
    if unsigned := why_not_approved(offered, policy) or why_replaced(offered, policy):
        return unsigned
    if policy.methods is not None and method.name not in policy.methods:
        return f"method {method.name!r} is not among policy.methods"
    if policy.columns is not None:
        forbidden = [
            name
            for name in (*study.schema.feature_names, study.schema.target.name, *study.aside)
            if name not in policy.columns
        ]
        if forbidden:
            return f"column {forbidden[0]!r} is not among policy.columns"
    if not promised.is_private and method.name not in policy.not_private:
        return f"no epsilon bounds what {method.name!r} releases, and policy.not_private does not name it"
    if policy.budget.relation == "add-remove" and method.sizes_told != "none" and method.name not in policy.not_private:
        return f"{method.name!r} tells how many records you have, which your budget under add-remove protects"
    if (counts_on := getattr(method, "counts_on", "")) and method.name not in policy.not_private:
        return f"policy.not_private does not name {method.name!r}, and {counts_on}"
    if promised.is_private and promised.epsilon > policy.budget.epsilon_per_study:
        return f"one run costs epsilon {promised.epsilon:g}, over policy.epsilon_per_study"
    return ""


def runs_that_fit(offered: OfferedStudy, policy: Policy) -> int:
    """How many runs a consent allows where its owner says nothing: the usual number, or fewer that the policy pays."""
    return next((runs for runs in range(DEFAULT_RUNS, 1, -1) if not why_not_so_many(offered, runs, policy)), 1)


def why_not_so_many(offered: OfferedStudy, runs: int, policy: Policy) -> str:
    """Why the policy does not pay for so many runs of a study, and what to change; empty if it does."""
    charge, budget = offered.charge(runs), policy.budget
    if why_not_private(charge.event):
        return ""
    cost = least_limit([charge], budget.delta, budget.relation)
    if cost <= budget.epsilon_per_study * (1 + 1e-9):  # as the ledger rounds
        return ""
    many = "one run costs" if runs == 1 else f"{runs} runs together cost"
    fewer = "" if runs == 1 else "allow fewer runs, or "
    return (
        f"{many} epsilon {cost:.4g}, over the {budget.epsilon_per_study:g} that it allows one study; {fewer}raise "
        f"epsilon_per_study to {math.ceil(cost * 100) / 100:g}"
    )


@dataclass(frozen=True, kw_only=True)
class ConsentCost:
    """What so many runs of a study cost, and what of the budget is spent before and after them."""

    cost: float  # infinite if no epsilon bounds it
    before: float
    after: float
    limit: float  # in all studies

    @property
    def fits(self) -> bool:
        """Whether all of them fit what is allowed in all studies."""
        return self.after <= self.limit


def costs_of(offered: OfferedStudy, runs: int, budget: Budget, ledger: Ledger, account: str) -> ConsentCost:
    """What so many runs of a study cost this party."""
    charge = offered.charge(runs)
    before = ledger.epsilon(account, delta=budget.delta, relation=budget.relation)
    if why_not_private(charge.event):
        return ConsentCost(cost=math.inf, before=before, after=before, limit=budget.epsilon_in_all)
    return ConsentCost(
        cost=least_limit([charge], budget.delta, budget.relation),
        before=before,
        after=ledger.epsilon(account, delta=budget.delta, relation=budget.relation, more=[charge]),
        limit=budget.epsilon_in_all,
    )


def cost_line(offered: OfferedStudy, runs: int, budget: Budget, ledger: Ledger, account: str) -> str:
    """What so many runs of a study cost, and what would be left of the budget."""
    costs = costs_of(offered, runs, budget, ledger, account)
    if math.isinf(costs.cost):
        return "no epsilon bounds what it costs; it stands beside your budget"
    line = f"at most epsilon {costs.cost:.4g} at delta {budget.delta:g}"
    if math.isinf(costs.limit):
        return line
    if not costs.fits:
        return (
            f"{line}; {_number(costs.before)} of {costs.limit:g} is spent, so not all of these runs will fit; allow "
            f"fewer, or raise epsilon_in_all"
        )
    return f"{line}; of {costs.limit:g} in all, {costs.limit - costs.after:.4g} would be left"


def policy_lines(policy: Policy) -> list[str]:
    """The policy, one rule a line."""
    budget = policy.budget
    return [
        f"methods            {'every one' if policy.methods is None else ', '.join(policy.methods) or 'none'}",
        f"columns            {'every one' if policy.columns is None else ', '.join(policy.columns) or 'none'}",
        f"min_records        {policy.min_records}",
        f"min_records_exact  {policy.min_records_exact}",
        f"epsilon_per_study  {budget.epsilon_per_study:g}",
        f"epsilon_in_all     {budget.epsilon_in_all:g}",
        f"delta              {budget.delta:g} (all runs together keep a limit at delta {budget.promised_delta:g})",
        f"relation           {budget.relation}",
        f"not_private        {', '.join(policy.not_private) or 'none: nothing leaves that no epsilon bounds'}",
        f"approvers          {'nobody need sign a study' if policy.approvers is None else _listed(policy.approvers)}",
    ]


def ledger_lines(spent: Mapping[str, float], in_all: float, budget: Budget, counts: Mapping[str, int]) -> list[str]:
    """What was spent, as a table with a bar for each study."""
    lines = [f"{'study':<24} {'answers':>8} {'epsilon':>10}   at delta {budget.delta:g}"]
    for study, epsilon in spent.items():
        lines.append(
            f"{study:<24} {counts[study]:>8} {_number(epsilon):>10}   {_bar(epsilon, budget.epsilon_per_study)}"
        )
    lines.append(
        f"{'in all':<24} {sum(counts.values()):>8} {_number(in_all):>10}   {_bar(in_all, budget.epsilon_in_all)}"
    )
    told = f"whatever fits a limit keeps it, with all runs together, at delta {budget.promised_delta:g}"
    return [*lines, f"{told} ({budget.relation})"]


def spending_plot(spent: Mapping[str, float], budget: Budget) -> str:
    """What was spent in each study, as a picture."""
    from matplotlib.figure import Figure

    finite = {study: epsilon for study, epsilon in spent.items() if math.isfinite(epsilon)}
    others = [study for study in spent if study not in finite]
    with drawing("spent"):
        figure = Figure(figsize=(6.4, 1.2 + 0.4 * max(1, len(finite))), layout="constrained")
        axes = figure.subplots()
        axes.barh(list(finite), list(finite.values()), color="#4477aa")
        if math.isfinite(budget.epsilon_per_study):
            axes.axvline(budget.epsilon_per_study, color="#aa3377", linestyle="--")
        axes.set_xlabel(f"epsilon spent at delta {budget.delta:g}; the dashed line is the limit for one study")
        told = f"Not bounded by any epsilon: {', '.join(others)}." if others else "All of it is bounded."
        return svg_element(figure, figure_id="spent", title="What was spent in each study", description=told)


def _listed(approvers: Collection[str]) -> str:
    return f"a study must be signed by one of: {', '.join(approvers) or 'nobody, so that none is answered'}"


def _number(epsilon: float) -> str:
    return f"{epsilon:.4g}" if math.isfinite(epsilon) else "unbounded"


def _bar(epsilon: float, limit: float) -> str:
    if not (math.isfinite(epsilon) and math.isfinite(limit)):
        return ""
    n_full = round(20 * min(1.0, epsilon / limit))
    return f"[{'#' * n_full}{'.' * (20 - n_full)}] of {limit:g}"
