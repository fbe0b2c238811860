"""A method that asks one step again and again: for benchmarks of what carries a round."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.data.schema import Schema
from tacit.federation.agreement import Ask, Terms
from tacit.federation.group import SizesTold, SumGroup
from tacit.federation.step import Step
from tacit.methods.cohort import Cohort
from tacit.privacy.event import Pure
from tacit.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Plan:
    cohort: Cohort


@dataclass(frozen=True)
class OneStep:
    """Asks `step` without end; each answer costs epsilon 1e-6."""

    step: Step
    name: str = "benchmark"
    sizes_told: SizesTold = "each"
    weighted_unit: Unit = "record"
    needs_everybody: bool = True

    def terms(self, schema: Schema, group: SumGroup) -> Terms:
        plan = Plan(cohort=Cohort.of(schema, group, colluders=None))
        return Terms(plan=plan, course=(Ask(step=self.step, times=10**9, event=Pure(epsilon=1e-6)),))
