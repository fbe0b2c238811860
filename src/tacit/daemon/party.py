"""A party's desk: it answers what its owner consented to, through its guard, and nothing else.

Before the guard sees a question, all of this must hold, or the question is refused and the refusal logged:
1. The owner opted into a study with exactly this digest, and has not opted out since.
2. The question is of that study, by its method, and of a step of that method.
3. Where the question has an argument by the name of one of the method's settings, it has the setting's value (of a
   calibration that is printed and promises nothing, the privacy settings alone). Where the study leaves open how many
   parties may collude, the noise allows for one.
4. It is put to parties with whom the owner agreed to be added up, and to as many as the study's quorum says; and it
   goes on without no more of them than the study's dropouts.
The guard then adds the party's own policy, with no more budget than the runs that were consented to cost, and signs
what it seals, for a sum within exactly those parties.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tacit import wire
from tacit.daemon.consent import FILE as CONSENT_FILE
from tacit.daemon.consent import Consents, Known
from tacit.daemon.party_file import FILE, LEDGER, PartyFile
from tacit.errors import DataError, PolicyRefusal, Refused, TacitError, UserError, WireError
from tacit.federation.guard import Bond, Guard
from tacit.federation.log import Log
from tacit.federation.message import Question, question_digest
from tacit.federation.net.acquaintance import Acquaintances, decode_members
from tacit.federation.net.journal import Journal
from tacit.federation.net.letter import Letter
from tacit.federation.net.offer import Offer
from tacit.federation.net.place import Place
from tacit.federation.net.station import ANSWER, ASK, CONSENT, HELLO, MEMBERS, REFUSAL, SPENT, STUDY, Outgoing
from tacit.federation.policy import Policy
from tacit.methods import Method
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.studies.request import PRIVACY_KEYS
from tacit.studies.study import Study
from tacit.wire import Value


@dataclass(frozen=True, kw_only=True)
class _Open:
    """A study under way: what was consented to, the guard that answers for it, and what it was made of."""

    known: Known
    study: Study
    method: Method
    guard: Guard
    stamp: tuple[object, ...]


class PartyDesk:
    """What a party does with letters that are believed. All of it runs in one thread."""

    streams = (ASK, STUDY, MEMBERS)

    def __init__(self, place: Place, journal: Journal) -> None:
        self._place = place
        self._journal = journal
        self._consents = Consents(place.folder / CONSENT_FILE)
        self._ledger = Ledger(place.folder / LEDGER)
        self._log = Log(self._ledger, place.identity.name)
        self._acquaintances = Acquaintances(place.folder)
        self._open: dict[str, _Open] = {}
        self._file: tuple[object, PartyFile] | None = None
        self._party_file()  # whatever is wrong with it is told at the start

    def close(self) -> None:
        """Close the files."""
        self._consents.close()
        self._ledger.close()

    def arrives(self, letter: Letter) -> None:
        """Nothing is so urgent."""

    def news(self) -> Mapping[str, bytes]:
        """Consents that were given or taken back since the last look."""
        changes = self._consents.changes()
        for change in changes:
            self._open.pop(change.digest, None)
            self._journal.note(f"opted-{change.state}", study=change.digest)
        if not changes:
            return {}
        return {CONSENT: wire.encode([{"study": change.digest, "state": change.state} for change in changes])}

    def handle(self, letter: Letter) -> Outgoing | None:
        """What to say to a letter. A reason that might tell of a record stays here."""
        try:
            match letter.kind:
                case "study":
                    self._keep_study(letter)
                case "members":
                    self._meet(letter)
                case "hello":
                    return self._card(letter)
                case "spent":
                    return self._spent(letter)
                case "ask":
                    return Outgoing(kind=ANSWER, body=self._answer(letter))
        except Refused as refusal:
            self._journal.note("refused", kind=letter.kind, study=letter.study, why=str(refusal))
            return _refusal(type(refusal).__name__, str(refusal))
        except DataError as error:
            self._journal.note("table-does-not-fit", study=letter.study, why=str(error))
            return _refusal("DataError", "its table does not fit the study's schema; its owner sees why in the log")
        except (sqlite3.Error, OSError) as error:
            self._journal.note("cannot-write", kind=letter.kind, error=type(error).__name__, why=str(error))
            return _refusal("StorageError", "it cannot write its ledger, so nothing leaves; its owner must make room")
        except Exception as error:  # what it says might depend on a record
            told = str(error) if isinstance(error, TacitError) else None
            self._journal.note("failed", kind=letter.kind, study=letter.study, error=type(error).__name__, why=told)
            return _refusal("Failed", "it could not answer; its owner sees why in the log")
        return None

    # --- the kinds of letters ----------------------------------------------------------------------------------------

    def _keep_study(self, letter: Letter) -> None:
        offer = Offer.decode(letter.body)
        if self._consents.add(offer):
            self._journal.note("study-announced", study=offer.digest, name=offer.name)

    def _meet(self, letter: Letter) -> None:
        for member in self._acquaintances.learn(decode_members(letter.body)):
            self._journal.note("pinned", member=member.name, role=member.role, fingerprint=member.fingerprint)

    def _card(self, letter: Letter) -> Outgoing:
        opened = self._opened(letter.study, look_again=True)
        guard = opened.guard
        with _in_neutral_words(self._journal):
            guard.policy.check_question(guard.name, opened.method.name, guard.table)
        self._journal.note("ready", study=letter.study, name=opened.study.name)
        accepts: list[Value] = [*sorted(opened.known.company)]
        card: dict[str, Value] = {
            "n_records": guard.table.n_records,
            "schema": guard.table.schema.digest(),
            "accepts": accepts,
        }
        body = wire.encode(card)
        return Outgoing(kind=HELLO, body=body)

    def _spent(self, letter: Letter) -> Outgoing:
        opened = self._opened(letter.study)
        match wire.decode(letter.body):
            case {"study": str(study), "delta": float(delta)} if study == opened.study.name and 0 <= delta < 1:
                epsilon = self._ledger.epsilon(self._place.identity.name, delta=delta, study=study)
                return Outgoing(kind=SPENT, body=wire.encode({"epsilon": float(epsilon)}))
        raise PolicyRefusal("it tells what it spent in studies that it opted into, and no other")

    def _answer(self, letter: Letter) -> bytes:
        digest = question_digest(letter.body)
        try:
            opened = self._opened(letter.study)
            question = Question.decode(letter.body)
            _check_question(question, letter, opened)
            _check_quorum(question, letter, opened.study)
            bond = self._bond(letter, opened)
        except (Refused, WireError) as refusal:
            self._log.append("refused", question=digest, study=letter.study, why=str(refusal))
            raise refusal if isinstance(refusal, Refused) else PolicyRefusal(str(refusal)) from refusal
        with _in_neutral_words(self._journal):
            answer = opened.guard.answer(letter.body, self._place.pinned.seal_keys, bond)
        self._journal.note(
            "answered", study=opened.study.name, run=question.run, step=question.step, round=letter.round,
            question=digest, bytes=len(answer),
        )  # fmt: skip
        return answer

    def _bond(self, letter: Letter, opened: _Open) -> Bond:
        """With whom this answer may be added up: whom the question names, if the owner accepted all of them."""
        own = self._place.member
        accepted = {**opened.known.company, own.name: own.letter_key}
        strangers = [name for name in letter.company if name not in accepted]
        if strangers or own.name not in letter.company:
            who = strangers[0] if strangers else own.name
            raise PolicyRefusal(
                f"the question would add it up with {who!r}, whom its owner has not accepted; let it opt in again"
                if strangers
                else f"the question is not put to {who!r}"
            )
        company = {name: accepted[name] for name in letter.company}
        return Bond(company=company, sign=self._place.identity.sign, least=opened.study.federation.least)

    # --- studies under way -------------------------------------------------------------------------------------------

    def _opened(self, digest: str, *, look_again: bool = False) -> _Open:
        """The study with this digest, if the owner opted into it; its table is read again if the file has changed."""
        known = self._consents.find(digest)
        if known is None or not known.state:
            raise PolicyRefusal(
                f"its owner has not opted into a study with digest {digest[:12]}; a changed study is another study"
            )
        if known.state != "in":
            raise PolicyRefusal(f"its owner opted out of study {known.read().name!r}")
        file = self._party_file()
        opened = self._open.get(digest)
        stamp = (file.data.stamp(), file, known.runs, known.company)
        if opened is None or (look_again and opened.stamp[:1] != stamp[:1]) or opened.stamp[1:] != stamp[1:]:
            opened = self._open_study(known, file, stamp)
            self._open[digest] = opened
        return opened

    def _open_study(self, known: Known, file: PartyFile, stamp: tuple[object, ...]) -> _Open:
        study = known.read()
        guard = Guard(
            self._place.identity.name,
            file.data.open(study.schema),
            policy=study_policy(file.policy, known),
            ledger=self._ledger,
            rng=Rng.system(),
        )
        return _Open(known=known, study=study, method=known.method(), guard=guard, stamp=stamp)

    def _party_file(self) -> PartyFile:
        """`party.toml`, read again if it has changed; one that cannot be read allows nothing."""
        path = self._place.folder / FILE
        stamp = (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None
        if self._file is None or self._file[0] != stamp:
            try:
                self._file = (stamp, PartyFile.read(self._place.folder))
            except UserError:
                self._file = None
                raise
        return self._file[1]


def study_policy(policy: Policy, known: Known) -> Policy:
    """The party's policy for one study: never more budget than the runs that were consented to cost.

    A method that the policy accepts by name although no epsilon bounds it has no limit to keep to.
    """
    allowed = known.epsilon_allowed(policy.budget.delta) * (1 + 1e-6)  # the accountant rounds
    if math.isinf(allowed) and known.method().name in policy.not_private:
        return replace(policy, budget=replace(policy.budget, epsilon_per_study=math.inf, epsilon_in_all=math.inf))
    limit = min(policy.budget.epsilon_per_study, allowed)
    return replace(policy, budget=replace(policy.budget, epsilon_per_study=limit))


def _check_question(question: Question, letter: Letter, opened: _Open) -> None:
    study, method = opened.study, opened.method
    if (question.study, question.run) != (study.name, letter.run):
        raise PolicyRefusal(f"the question is of study {question.study!r}, its letter of {study.name!r}")
    if question.method != method.name or not question.step.startswith(f"{method.name}/"):
        raise PolicyRefusal(
            f"the study asks for {method.name!r}; step {question.step!r} of {question.method!r} is not part of it"
        )
    settings = method.get_params()
    if settings.get("calibration") == "paper":
        settings = {key: value for key, value in settings.items() if key in PRIVACY_KEYS}
    for key, value in question.arguments.items():
        wanted = settings.get(key)
        if wanted is not None and isinstance(wanted, bool | int | float | str) and not _same(value, wanted):
            raise PolicyRefusal(
                f"the study says {key} = {wanted!r}, and the question has another; it is not the study's"
            )
    if "colluders" in settings and settings["colluders"] is None:
        _check_colluders(question, letter)


def _check_colluders(question: Question, letter: Letter) -> None:
    """Refuse noise that counts on everybody else where the study leaves it to the method, which counts on all but one.

    Every method's default is one colluder, or none where a party is alone.
    """
    least = min(1, len(letter.company) - 1)
    colluders = question.arguments.get("colluders", least)
    if not isinstance(colluders, int) or colluders < least:
        raise PolicyRefusal(
            f"the question counts on {colluders!r} colluders, and the study on {least} or more; it is not the study's"
        )


def _check_quorum(question: Question, letter: Letter, study: Study) -> None:
    """Refuse to be in a sum that may be opened without more parties than the study says."""
    quorum = question.arguments.get("quorum")
    if quorum is None:
        return
    asked = study.federation
    least = max(asked.least, len(letter.company) - asked.dropouts)
    if not isinstance(quorum, int) or quorum < least:
        raise PolicyRefusal(
            f"the question lets a round go on with {quorum!r} of {len(letter.company)} parties, and the study with no "
            f"fewer than {least}; it is not the study's"
        )


def _same(value: object, wanted: bool | int | float | str) -> bool:
    if isinstance(value, bool | int | float) and isinstance(wanted, bool | int | float):
        return math.isclose(value, wanted, rel_tol=1e-12) or value == wanted
    return value == wanted


@contextmanager
def _in_neutral_words(journal: Journal) -> Iterator[None]:
    """A policy's own words may tell of the table, such as that it is small: they stay in the party's own logs."""
    try:
        yield
    except PolicyRefusal as refusal:
        journal.note("policy-refused", why=str(refusal))
        raise PolicyRefusal(
            "its policy does not allow this (the method, a column, how exact or how large a sum is, or too few "
            "records); its owner sees which in its log"
        ) from refusal


def _refusal(error: str, why: str) -> Outgoing:
    return Outgoing(kind=REFUSAL, body=wire.encode({"error": error, "why": why}))
