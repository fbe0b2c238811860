"""The coordinator's studies on their way: drafts, versions, states, and who did what to them.

    draft -> in review -> approved -> published -> running -> finished
                 |            |           |           |
                 v            v           v           v
               draft        draft      stopped     stopped      (a stopped study may be published again)

A study keeps its `id`. What parties consent to is one version of it, by that version's digest. A draft may be changed;
from the review on a version is fixed, and a change makes the next version, which begins as a draft.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tacit.errors import SettingError, StudyError
from tacit.rand import Rng
from tacit.storage import Database, open_database
from tacit.studies.study import Study

FILE = "catalogue.db"  # a party's studies.db has what it was offered
LONGEST_TEXT = 400_000  # characters of a study file

State = Literal["draft", "in review", "approved", "published", "running", "finished", "stopped"]
STATES: tuple[State, ...] = get_args(State)
PUBLIC_STATES: tuple[State, ...] = ("published", "running", "finished", "stopped")
NEXT: dict[State, tuple[State, ...]] = {
    "draft": ("in review",),
    "in review": ("approved", "draft"),
    "approved": ("published", "draft"),
    "published": ("running", "stopped"),
    "running": ("published", "finished", "stopped"),
    "finished": ("running",),
    "stopped": ("published", "running"),
}

_TABLES = """
CREATE TABLE IF NOT EXISTS study (
    id        TEXT PRIMARY KEY,
    builds_on TEXT,
    created   REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS version (
    study    TEXT NOT NULL REFERENCES study (id),
    number   INTEGER NOT NULL,
    state    TEXT NOT NULL,
    author   TEXT NOT NULL,
    text     TEXT NOT NULL,
    name     TEXT NOT NULL,
    purpose  TEXT NOT NULL,
    digest   TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created  REAL NOT NULL,
    changed  REAL NOT NULL,
    PRIMARY KEY (study, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS version_digest ON version (digest);
CREATE TABLE IF NOT EXISTS deed (
    study  TEXT NOT NULL,
    number INTEGER NOT NULL,
    time   REAL NOT NULL,
    who    TEXT NOT NULL,
    state  TEXT NOT NULL,
    why    TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS deed_study ON deed (study, time);
CREATE TABLE IF NOT EXISTS attachment (
    study   TEXT NOT NULL,
    number  INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    content BLOB NOT NULL,
    time    REAL NOT NULL,
    PRIMARY KEY (study, number, kind)
) WITHOUT ROWID;
"""
_COLUMNS = (
    "v.study, v.number, v.state, v.author, v.text, v.name, v.purpose, v.digest, v.revision, v.created, v.changed, "
    "s.builds_on"
)
_FROM = f"SELECT {_COLUMNS} FROM version v JOIN study s ON s.id = v.study"


class StaleDraft(SettingError):
    """Somebody has changed the draft, perhaps in another tab, since it was read."""


@dataclass(frozen=True, kw_only=True)
class StudyVersion:
    """One version of a study, as it stands.

    Attributes:
        study: the study's id; the same for all of its versions.
        number: the version, from 1.
        state: where it is on its way.
        author: the account that wrote this version.
        text: the study file, as it was typed; a draft's need not be a study yet.
        name, purpose: of the study, or what could be read of it.
        digest: what parties consent to; empty while the text is not a study.
        revision: how often this version was saved; say it when you save, so that no other tab's change is lost.
        created, changed: seconds since 1970.
        builds_on: the id of the study whose model this one starts from, if any.
    """

    study: str
    number: int
    state: State
    author: str
    text: str
    name: str
    purpose: str
    digest: str
    revision: int
    created: float
    changed: float
    builds_on: str | None

    def read(self) -> Study:
        """The study that the text says; a `StudyError` if it does not say one."""
        return Study.parse(self.text, "the study")


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A change of a version's state: by whom, when, to what, and why if somebody said why."""

    number: int
    time: float
    who: str
    state: str
    why: str


class StudyStore:
    """The studies, in one SQLite file.

    Guarantees:
        The text of a version never changes once it has left the state draft. States change only as `NEXT` says, and
        every change is written down with who made it. Two writers of one draft never undo each other's change unseen.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the file, or make it; None lives and dies with the process."""
        self._database: Database = open_database(path, _TABLES, use="for studies")

    def create(self, author: str, text: str, *, builds_on: str | None = None) -> StudyVersion:
        """A new study: version 1, a draft."""
        if builds_on is not None and self.find(builds_on) is None:
            raise SettingError(f"there is no study {builds_on!r} to build on; choose one of the catalogue")
        study, now = Rng.system().bytes(8).hex(), time.time()
        with self._database.transaction() as database:
            database.execute("INSERT INTO study VALUES (?, ?, ?)", (study, builds_on, now))
            self._add(study, 1, author, text)
        return self.get(study)

    def new_version(self, study: str, author: str, text: str) -> StudyVersion:
        """The next version of a study, a draft; refused while the latest one still is a draft."""
        with self._database.transaction():
            latest = self.get(study)
            if latest.state == "draft":
                raise SettingError(f"version {latest.number} of this study still is a draft; change that one")
            self._add(study, latest.number + 1, author, text)
        return self.get(study)

    def save(self, version: StudyVersion, text: str) -> StudyVersion:
        """Replace a draft's text, if the draft still is the one that was read.

        Raises:
            StaleDraft: if it was changed since `version` was read.
        """
        with self._database.transaction() as database:
            now = self.get(version.study, version.number)
            if now.state != "draft":
                raise SettingError(f"version {now.number} is {now.state} and stays as it is; make a new version")
            if now.revision != version.revision:
                raise StaleDraft("this draft was changed since you opened it; compare both texts and save again")
            name, purpose, digest = described(text)
            database.execute(
                "UPDATE version SET text = ?, name = ?, purpose = ?, digest = ?, revision = revision + 1, changed = ? "
                "WHERE study = ? AND number = ?",
                (text, name, purpose, digest, time.time(), now.study, now.number),
            )
        return self.get(version.study, version.number)

    def move(self, version: StudyVersion, state: State, who: str, why: str = "") -> StudyVersion:
        """Bring a version to its next state; `who` did it. The version must still be in the state that was read."""
        with self._database.transaction() as database:
            now = self.get(version.study, version.number)
            if now.state != version.state or now.revision != version.revision:
                raise StaleDraft(f"this version is {now.state} by now; look at it again before you go on")
            if state not in NEXT[now.state]:
                raise SettingError(f"a study that is {now.state} cannot become {state}; {_possible(now.state)}")
            if now.state == "draft":
                now.read()  # what is reviewed is a study
            database.execute(
                "UPDATE version SET state = ?, changed = ? WHERE study = ? AND number = ?",
                (state, time.time(), now.study, now.number),
            )
            self._note(now.study, now.number, who, state, why)
        return self.get(version.study, version.number)

    def find(self, study: str, number: int | None = None) -> StudyVersion | None:
        """A version of a study, the latest by default; None if there is none."""
        wanted = "ORDER BY v.number DESC LIMIT 1" if number is None else "AND v.number = ?"
        values = (study,) if number is None else (study, number)
        row = self._database.execute(f"{_FROM} WHERE v.study = ? {wanted}", values).fetchone()
        return None if row is None else _version(row)

    def get(self, study: str, number: int | None = None) -> StudyVersion:
        """As `find`, and an error if there is none."""
        found = self.find(study, number)
        if found is None:
            raise SettingError(f"there is no study {study!r}" + ("" if number is None else f" version {number}"))
        return found

    def by_digest(self, digest: str) -> StudyVersion | None:
        """The latest version with this digest; None if there is none."""
        row = self._database.execute(
            f"{_FROM} WHERE v.digest = ? AND v.digest != '' ORDER BY v.changed DESC LIMIT 1", (digest,)
        ).fetchone()
        return None if row is None else _version(row)

    def versions(self, study: str) -> list[StudyVersion]:
        """All versions of a study, the latest first."""
        rows = self._database.execute(f"{_FROM} WHERE v.study = ? ORDER BY v.number DESC", (study,))
        return [_version(row) for row in rows]

    def all(self, states: Collection[State] = STATES, search: str = "") -> list[StudyVersion]:
        """Every version in one of the states whose name, purpose, author or text has all the words; newest first."""
        marks = ", ".join("?" for _ in states)
        words = search.split()[:10]
        matches = " AND (v.name || ' ' || v.purpose || ' ' || v.author || ' ' || v.text) LIKE ? ESCAPE '!'" * len(words)
        rows = self._database.execute(
            f"{_FROM} WHERE v.state IN ({marks}){matches} ORDER BY v.changed DESC, v.study, v.number DESC",
            (*states, *(f"%{_escaped(word)}%" for word in words)),
        )
        return [_version(row) for row in rows]

    def built_on(self, study: str) -> list[StudyVersion]:
        """The latest version of each study that builds on this one."""
        rows = self._database.execute(f"{_FROM} WHERE s.builds_on = ? ORDER BY v.study, v.number", (study,))
        return list({version.study: version for version in map(_version, rows)}.values())

    def deeds(self, study: str) -> list[Deed]:
        """What was done to a study, the first deed first."""
        rows = self._database.execute(
            "SELECT number, time, who, state, why FROM deed WHERE study = ? ORDER BY time, rowid", (study,)
        )
        return [Deed(number=n, time=t, who=who, state=state, why=why) for n, t, who, state, why in rows]

    def attach(self, version: StudyVersion, kind: str, content: bytes) -> None:
        """Keep something with a version under a name for its kind.

        A name with a dot, such as "model.json", is a result: whoever may see the version may download it. One without,
        such as "approval", is for the coordinator itself.
        """
        row = (version.study, version.number, kind, content, time.time())
        self._database.execute("INSERT OR REPLACE INTO attachment VALUES (?, ?, ?, ?, ?)", row)

    def attachment(self, version: StudyVersion, kind: str) -> bytes | None:
        """What was attached; None if nothing was."""
        row = self._database.execute(
            "SELECT content FROM attachment WHERE study = ? AND number = ? AND kind = ?",
            (version.study, version.number, kind),
        ).fetchone()
        return None if row is None else bytes(row[0])

    def attachments(self, version: StudyVersion) -> list[str]:
        """The kinds of what was attached."""
        rows = self._database.execute(
            "SELECT kind FROM attachment WHERE study = ? AND number = ? ORDER BY kind", (version.study, version.number)
        )
        return [str(kind) for (kind,) in rows]

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _add(self, study: str, number: int, author: str, text: str) -> None:
        name, purpose, digest = described(text)
        now = time.time()
        row = (study, number, "draft", author, text, name, purpose, digest, 1, now, now)
        self._database.execute("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._note(study, number, author, "draft", "")

    def _note(self, study: str, number: int, who: str, state: str, why: str) -> None:
        self._database.execute(
            "INSERT INTO deed VALUES (?, ?, ?, ?, ?, ?)", (study, number, time.time(), who, state, why)
        )


def described(text: str) -> tuple[str, str, str]:
    """Name, purpose and digest of a study file; of a text that is not one yet, a name for it and nothing else.

    Raises:
        StudyError: if the text is too long to be kept, even as a draft.
    """
    if len(text) > LONGEST_TEXT:
        raise StudyError(f"the study file has {len(text):,} characters; {LONGEST_TEXT:,} is the most")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise StudyError(f"the study file is not UTF-8 text at character {error.start}; save it as UTF-8") from None
    try:
        study = Study.parse(text, "the study")
    except StudyError:
        return "Untitled draft", "", ""
    return study.name, study.purpose, study.digest()


def _version(row: tuple[object, ...]) -> StudyVersion:
    names = (
        "study", "number", "state", "author", "text", "name", "purpose", "digest", "revision", "created", "changed",
        "builds_on",
    )  # fmt: skip
    return StudyVersion(**dict(zip(names, row, strict=True)))  # type: ignore[arg-type]


def _possible(state: State) -> str:
    return f"it can become {' or '.join(NEXT[state])}" if NEXT[state] else "it stays so"


def _escaped(word: str) -> str:
    return word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
