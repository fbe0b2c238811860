"""Real party handlers in one process, and a coordinator that says to them whatever it likes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from tacit import wire
from tacit.daemon.party.anchor import make_ledger
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.handler import PartyHandler
from tacit.daemon.party.settings import DataSource, write_party_file
from tacit.federation.group import SumGroup
from tacit.federation.member.address import Address
from tacit.federation.member.folder import MemberFolder, Pinned
from tacit.federation.member.identity import Identity
from tacit.federation.message import Question
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.letter import Letter
from tacit.federation.step import Step
from tacit.rand import Rng
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.storage import make_private_folder
from tacit.studies.run import method_of
from tacit.studies.study import Study

from ..daemon.conftest import allow, records

EXACT = ("privlogit", "pooled")


class PartyRefused(Exception):
    """What a party said instead of an answer."""


def refusal(act: Callable[[], object]) -> str:
    """What a party says to this; empty if it does it."""
    try:
        act()
    except PartyRefused as refused:
        return str(refused)
    return ""


@dataclass
class Office:
    """Parties, each with its own folder; what they seal is for the nodes of `center`."""

    root: Path
    sizes: dict[str, int]
    center: EmbeddedCenter = field(default_factory=EmbeddedCenter)
    handlers: dict[str, PartyHandler] = field(default_factory=dict)
    folders: dict[str, MemberFolder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        coordinator = Identity("coordinator", "coordinator", b"c" * 32).member
        nodes = [Identity(f"node-{k}", "center", bytes([k]) * 32).member for k in range(3)]
        center = tuple(
            type(node)(**{**vars(node), "seal_key": key}) for node, key in zip(nodes, self.center.keys, strict=True)
        )
        pinned = Pinned(address=Address(url="tls://x:1", authority=""), coordinator=coordinator, center=center)
        for seed, (name, n) in enumerate(self.sizes.items()):
            folder = make_private_folder(self.root / name)
            identity = Identity.make(name, "party", folder)
            MemberFolder.write(folder, identity.member, pinned, None)
            self.table(seed, n).to_csv(self.root / f"{name}.csv", index=False)
            write_party_file(folder, DataSource(file=self.root / f"{name}.csv"))
            allow(folder)
            make_ledger(folder, name)
            file = folder / "party.toml"
            file.write_text(file.read_text().replace("not_private = []", f"not_private = {[*EXACT]!r}"))
            self.folders[name] = MemberFolder.load(folder, "party")
            self.handlers[name] = PartyHandler(self.folders[name], Journal(name, (self.root / f"{name}.log").open("a")))

    @staticmethod
    def table(seed: int, n: int) -> pd.DataFrame:
        return records(n, seed)

    def set_policy(self, name: str, line: str, new: str) -> None:
        """Put another line into the owner's file in place of the one that matches."""
        path = self.folders[name].path / "party.toml"
        text, n_changed = re.subn(line, new, path.read_text(), flags=re.MULTILINE)
        assert n_changed == 1
        path.write_text(text)

    def opt_in(
        self,
        study: Study,
        *,
        runs: int = 1,
        accepted: tuple[str, ...] | None = None,
        offers: Mapping[str, float] | None = None,
    ) -> None:
        """Every owner opts in, accepts these parties (None: all), and offers what is asked, or less."""
        keys = {name: self.folders[name].member.letter_key for name in accepted or self.sizes}
        for name, folder in self.folders.items():
            consents = Consents(folder.path / CONSENT_FILE)
            consents.keep(study)
            consents.decide(study.digest(), "in", runs, keys, offer=(offers or {}).get(name))
            consents.close()

    # --- what the coordinator does -----------------------------------------------------------------------------------

    def send(self, name: str, kind: str, study: Study, run: str = "", body: bytes = b"") -> bytes:
        """One letter; the reply's body, or `PartyRefused`."""
        letter = Letter(
            kind=kind, study=study.digest(), run=run, sender="coordinator", recipient=name,
            nonce=Rng.system().bytes(16).hex(), time=time.time(), body=body,
        )  # fmt: skip
        reply = self.handlers[name].handle(letter)
        assert reply is not None
        if reply.kind == "refusal":
            told = wire.decode(reply.body)
            assert isinstance(told, dict)
            raise PartyRefused(f"{told['error']}: {told['why']}")
        return reply.body

    def group(self, study: Study, *names: str, quorum: int | None = None) -> SumGroup:
        """A sum group with the sizes that the parties signed."""
        sizes, signatures, offers = {}, {}, {}
        for name in names or tuple(self.sizes):
            card = wire.decode(self.send(name, "hello", study))
            assert isinstance(card, dict)
            sizes[name], signatures[name] = card["n_records"], card["signature"]
            offers |= {name: card["offer"]} if "offer" in card else {}
        told = method_of(study).sizes_told
        return SumGroup.of(sizes, quorum=quorum or len(sizes), told=told, signatures=signatures, offers=offers)  # type: ignore[arg-type]

    def begin(self, study: Study, run: str, group: SumGroup) -> None:
        for name in group.names:
            self.send(name, "begin", study, run, group.encode())

    def question(
        self, study: Study, run: str, group: SumGroup, step: Step, *, turn: int = 0, values: object = None
    ) -> bytes:
        """A question of the true plan, which the coordinator knows as well as the parties."""
        method = method_of(study)
        return Question(
            study=study.name, run=run, method=method.name, step=step.name, version=step.version, group=group.digest,
            plan=method.terms(study.schema, group).digest, turn=turn, values=step.encode_values(values),
        ).encode()  # fmt: skip

    def ask(self, name: str, study: Study, run: str, message: bytes) -> bytes:
        return self.send(name, "ask", study, run, message)

    def n_releases(self, name: str) -> int:
        return self.handlers[name]._ledger.n_releases(name)

    def close(self) -> None:
        for handler in self.handlers.values():
            handler.close()
            handler._journal._stream.close()  # type: ignore[union-attr]
