"""Exact sums of one study are over one group: two sums would differ by one party's part."""

from __future__ import annotations

from tacit import wire
from tacit.errors import NotAgreed
from tacit.federation.agreement import Agreement
from tacit.federation.group import SumGroup
from tacit.federation.reply import Encrypted, Kept, Relayed, Reply, Sealed
from tacit.privacy.event import why_not_private
from tacit.privacy.ledger import Ledger

_EXACT_GROUP = "exact group"  # pinned for a study, not for a run


def check_exact_group(
    ledger: Ledger, account: str, reply: Reply, agreement: Agreement | None, group: SumGroup | None
) -> None:
    """Refuse what no epsilon bounds to a second group of one study.

    1. Such a sum is opened over everybody in the group. With dropouts two rounds could differ by a party.
    2. The first one pins the names of its group for all runs of the agreement.
    So all such sums of an agreement are over the same parties, and no two differ by some party's addend alone. Private
    sums need no such rule: the ledger pays for each. A simulation protects nobody from whoever runs it.
    """
    is_summed = isinstance(reply, Sealed | Kept | Encrypted | Relayed)
    if agreement is None or group is None or not agreement.digest or not is_summed:
        return
    if not why_not_private(reply.event):
        return
    if group.quorum < group.n_parties:
        raise NotAgreed("what no epsilon bounds is added up over every party of the run; ask without dropouts")
    names = wire.digest([*sorted(group.names)])
    if ledger.pin(f"{account} {_EXACT_GROUP}", agreement.digest, _EXACT_GROUP, names) != names:
        raise NotAgreed(
            f"study {agreement.study!r} was answered exactly in a run with other parties, and the two sums would "
            f"differ by one party's part; run it with the same parties, or as another study"
        )
