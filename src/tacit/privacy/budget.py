"""What a party's records may cost at most. The ledger checks it before a run begins; `filter` has the proof."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.privacy.filter import SHARES
from tacit.privacy.guarantee import Relation, check_delta, check_epsilon


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that a party's records may cost, in one study and in all studies.

    Guarantees:
        All runs that were accepted within a limit are (limit, 4 delta)-differentially private together, whoever chose
        them and after whatever outcomes: see `filter`.

    A run that no epsilon bounds stands beside this: whoever allowed it has allowed it by name (`Policy.not_private`).
    `relation` is the one under which the party counts. Runs that are stated for add-remove are converted to
    replace-one; runs that are stated for replace-one do not fit a budget under add-remove.

    Example:
        >>> import tacit
        >>> budget = tacit.Budget(epsilon_per_study=1.0, epsilon_in_all=3.0)
        >>> budget.epsilon_in_all
        3.0
    """

    epsilon_per_study: float = math.inf
    epsilon_in_all: float = math.inf
    delta: float = 1e-6
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon_per_study, "the budget's epsilon_per_study")
        check_epsilon(self.epsilon_in_all, "the budget's epsilon_in_all")
        check_delta(self.delta, "the budget's delta")

    @property
    def promised_delta(self) -> float:
        """The delta of what is promised about all runs together."""
        return SHARES * self.delta
