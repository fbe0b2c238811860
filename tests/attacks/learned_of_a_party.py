"""A party's daemon in this process, without a network: what a coordinator gets for a letter."""

from __future__ import annotations

import io
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
from tacit.federation.nats.kind import LetterReply
from tacit.federation.nats.letter import Letter
from tacit.studies.run import method_of
from tacit.studies.study import Study
from tacit.wire import Value

from ..daemon.conftest import allow


class Daemon:
    """One party, whose owner opted into one study; `journal` is what its owner reads."""

    def __init__(self, folder: Path, study: Study, records: pd.DataFrame) -> None:
        folder.mkdir()
        records.to_csv(folder / "records.csv", index=False)
        write_party_file(folder, DataSource(file=folder / "records.csv"))
        allow(folder)
        make_ledger(folder, "a")
        identity = Identity.make("a", "party", folder)
        nodes = tuple(Identity.make(f"n{i}", "center", _made(folder / f"n{i}")).member for i in range(3))
        pinned = Pinned(address=Address(url="tls://localhost:1", authority=""), coordinator=nodes[0], center=nodes)
        self.study, self.journal = study, io.StringIO()
        consents = Consents(folder / CONSENT_FILE)
        consents.keep(study)
        consents.decide(study.digest(), "in", runs=10)
        consents.close()
        place = MemberFolder(path=folder, identity=identity, member=identity.member, pinned=pinned, seat=None)
        self.identity = identity
        self.handler = PartyHandler(place, Journal("a", self.journal))

    def tell(self, kind: str, body: bytes = b"", run: str = "") -> LetterReply | None:
        letter = Letter(
            kind=kind,
            study=self.study.digest(),
            run=run,
            sender="c",
            recipient="a",
            nonce="0" * 32,
            time=0.0,
            body=body,
        )
        return self.handler.handle(letter)

    def card(self) -> dict[str, Value]:
        """What the party announces; the words of its refusal, if it refuses."""
        reply = self.tell("hello")
        assert reply is not None
        card = wire.decode(reply.body)
        assert isinstance(card, dict)
        return {name: value for name, value in card.items() if name != "signature"}

    def answer(self, group: SumGroup, run: str = "r") -> str:
        """What becomes of the first question of a run: an answer, or the words of a refusal."""
        method = method_of(self.study)
        began = self.tell("begin", group.encode(), run)
        assert began is not None
        if began.kind == "refusal":
            return str(wire.decode(began.body))
        terms = method.terms(self.study.schema, group)
        step = terms.course[0].step
        question = Question(
            study=self.study.name, run=run, method=method.name, step=step.name, version=step.version,
            group=group.digest, plan=terms.digest, turn=0, values=step.encode_values(None),
        )  # fmt: skip
        reply = self.tell("ask", question.encode(), run)
        assert reply is not None
        return "answered" if reply.kind == "answer" else str(wire.decode(reply.body))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
