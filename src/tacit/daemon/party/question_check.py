"""What a party checks of a run's sum group before its guard agrees: who is in it, and whose sizes are believed.

The guard knows no keys. So this is where names become the keys that the owner accepted, and where each size is
compared with the signature of the party that announced it. What a question may ask follows from the study and is the
guard's to check (`federation.agreement`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tacit.errors import NotAgreed
from tacit.federation.group import SumGroup, size_statement
from tacit.secure.signature import is_signed


def accepted_keys(group: SumGroup, accepted: Mapping[str, bytes]) -> dict[str, bytes]:
    """The public keys of all who are in the group; `NotAgreed` if the owner has not accepted one of them."""
    stranger = next((name for name in group.names if name not in accepted), None)
    if stranger is not None:
        raise NotAgreed(
            f"the run would add it up with {stranger!r}, whom its owner has not accepted; let it opt in again"
        )
    return {name: accepted[name] for name in group.names}


def check_sizes(group: SumGroup, study: str, keys: Mapping[str, bytes]) -> None:
    """Refuse a group in which a size or an offer is not signed by the party whose it is; `study` is a digest."""
    sizes = group.sizes or ((0,) * group.n_parties if group.offers else ())
    for name, n_records in zip(group.names, sizes, strict=False):
        statement = size_statement(study, name, n_records, group.offers.get(name))
        if not is_signed(statement, group.signatures.get(name, b""), keys[name]):
            raise NotAgreed(f"the size of {name!r} is not the one that {name!r} announced; gather anew")
