"""Who may use a site: accounts, their roles and their passwords.

A role may do what the ones before it may do. A viewer reads, a researcher writes studies and runs them, an approver
approves those of others, an administrator manages accounts.
"""

from __future__ import annotations

import base64
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from tacit.errors import SettingError
from tacit.rand import Rng
from tacit.storage import Database
from tacit.visible import unseen

Role = Literal["viewer", "researcher", "approver", "administrator"]
ROLES: tuple[Role, ...] = get_args(Role)
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 200
ONE_TIME_DAYS = 7
"""So long a password is good that somebody else gave."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,190}")
_HASHER = PasswordHasher()
_NOBODY = _HASHER.hash("nobody has this password")  # checked for unknown names, so that they take as long
_COLUMNS = "name, role, must_change, disabled, email, subject, created, expires"


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account.

    Attributes:
        name: lower-case letters, digits and . _ -
        role: what it may do.
        must_change: whether the password was given by somebody else, and must be changed first.
        disabled: whether it may not log in.
        email: where single sign-on knows it by its e-mail address; empty if nowhere.
        subject: the sign-on provider's own name for it; empty until it first came that way.
        expires: when its one-time password is void; 0 where the password is its owner's.
    """

    name: str
    role: Role
    must_change: bool = False
    disabled: bool = False
    email: str = ""
    subject: str = ""
    created: float = 0.0
    expires: float = 0.0

    @property
    def is_expired(self) -> bool:
        """Whether its password was good for one log-in, and is void."""
        return self.must_change and 0 < self.expires <= time.time()

    def may(self, role: Role) -> bool:
        """Whether the account may do what this role may do."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Accounts:
    """The accounts of a site.

    Guarantees:
        A password is kept as its argon2 hash alone. What `password_hash` gives for a name that nobody has
        takes as long to check. There is always an administrator who can log in, once there was one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, role: Role, *, email: str = "") -> str:
        """A new account; returns a password for its first log-in within a week, which must be changed there."""
        password = one_time_password()
        checked_name(name)
        now = time.time()
        row = (name, checked_role(role), _HASHER.hash(password), 1, 0, checked_email(email), "", now, _expiry(now))
        try:
            with self._database.transaction() as database:
                self._check_email_free(email, name)
                database.execute("INSERT INTO account VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            raise SettingError(f"there is an account {name!r} already; choose another name, or reset it") from None
        return password

    def find(self, name: str) -> Account | None:
        """The account of this name; None if there is none."""
        row = self._database.execute(f"SELECT {_COLUMNS} FROM account WHERE name = ?", (name,)).fetchone()
        return None if row is None else _account(row)

    def get(self, name: str) -> Account:
        """As `find`, and an error if there is none."""
        if (found := self.find(name)) is None:
            raise SettingError(f"there is no account {name!r}; `tacit coordinator account list` shows them")
        return found

    def all(self) -> list[Account]:
        """Every account, by name."""
        return [_account(row) for row in self._database.execute(f"SELECT {_COLUMNS} FROM account ORDER BY name")]

    def password_hash(self, name: str) -> str:
        """What `fits` compares with: the account's, or a hash of nobody's for a name that nobody has."""
        row = self._database.execute("SELECT password FROM account WHERE name = ? AND disabled = 0", (name,)).fetchone()
        return _NOBODY if row is None else str(row[0])

    def set_password(self, name: str, password: str) -> None:
        """Take a new password, chosen by the account's owner."""
        check_password(password, name)
        self._set(name, "password = ?, must_change = 0, expires = 0", _HASHER.hash(password))

    def reset(self, name: str) -> str:
        """Give a new one-time password, good for a week; the old one is void."""
        password = one_time_password()
        with self._database.transaction():
            self._set(name, "password = ?, must_change = 1", _HASHER.hash(password))
            self._set(name, "expires = ?", _expiry(time.time()))
        return password

    def drop_password(self, name: str) -> None:
        """No password opens this account any more, until it gets one again; it comes by single sign-on."""
        self._set(name, "must_change = 0, expires = 0, password = ?", "none")

    def disable(self, name: str, *, disabled: bool = True) -> None:
        """Shut an account out, or let it in again."""
        with self._still_administered():
            self._set(name, "disabled = ?", int(disabled))

    def set_role(self, name: str, role: Role) -> None:
        """Give an account another role."""
        with self._still_administered():
            self._set(name, "role = ?", checked_role(role))

    def set_email(self, name: str, email: str) -> None:
        """Say under which e-mail address single sign-on knows an account; forgets the subject that it had."""
        with self._database.transaction():
            self._check_email_free(email, name)
            self._set(name, "subject = '', email = ?", checked_email(email))

    def set_subject(self, name: str, subject: str) -> None:
        """Remember the provider's name for an account."""
        self._set(name, "subject = ?", subject)

    def by_email(self, email: str) -> Account | None:
        """The account with this e-mail address."""
        row = self._database.execute(
            f"SELECT {_COLUMNS} FROM account WHERE email = ? AND email != ''", (email.lower(),)
        ).fetchone()
        return None if row is None else _account(row)

    def by_subject(self, subject: str) -> Account | None:
        """The account that the provider knows by this name."""
        row = self._database.execute(
            f"SELECT {_COLUMNS} FROM account WHERE subject = ? AND subject != ''", (subject,)
        ).fetchone()
        return None if row is None else _account(row)

    def _set(self, name: str, what: str, value: object) -> None:
        self.get(name)
        self._database.execute(f"UPDATE account SET {what} WHERE name = ?", (value, name))

    def _check_email_free(self, email: str, name: str) -> None:
        other = self.by_email(email)
        if other is not None and other.name != name:
            raise SettingError(f"the account {other.name!r} has the e-mail address {email!r} already")

    @contextmanager
    def _still_administered(self) -> Iterator[None]:
        """A change that is undone if it would leave the site without an administrator."""
        with self._database.transaction():
            was_administered = self._is_administered()
            yield
            if was_administered and not self._is_administered():
                raise SettingError("this is the last administrator who can log in; make another one first")

    def _is_administered(self) -> bool:
        return any(account.role == "administrator" and not account.disabled for account in self.all())


def fits(password: str, password_hash: str) -> bool:
    """Whether a password is the one of the hash; takes a tenth of a second, so call it in a thread."""
    try:
        return _HASHER.verify(password_hash, password[: LONGEST_PASSWORD + 1])
    except (VerificationError, InvalidHashError):
        return False


def one_time_password() -> str:
    """80 bits, in groups that can be read over the telephone."""
    letters = base64.b32encode(Rng.system().bytes(10)).decode("ascii").lower()
    return "-".join(letters[i : i + 4] for i in range(0, 16, 4))


def _expiry(now: float) -> float:
    return now + ONE_TIME_DAYS * 86400.0


def check_password(password: str, name: str) -> None:
    """Refuse a password that is too short, too long, or the name."""
    if len(password) < SHORTEST_PASSWORD:
        raise SettingError(f"the password has {len(password)} characters; choose one of {SHORTEST_PASSWORD} or more")
    if len(password) > LONGEST_PASSWORD:
        raise SettingError(f"the password has {len(password)} characters; {LONGEST_PASSWORD} is the most")
    if len(set(password)) < 5:
        raise SettingError("the password repeats the same few characters; choose another one")
    if name in password.lower() and len(password) < len(name) + SHORTEST_PASSWORD:
        raise SettingError("the password is little more than the account's name; choose another one")


def checked_name(name: str) -> str:
    """The name of an account, if it can be one."""
    if not _NAME.fullmatch(name):
        raise SettingError(f"{name!r} cannot be an account's name; use up to 40 lower-case letters, digits and . _ -")
    return name


def checked_role(role: str) -> str:
    """The role, if it is one."""
    if role not in ROLES:
        raise SettingError(f"{role!r} is no role; choose one of {', '.join(ROLES)}")
    return role


def checked_email(email: str) -> str:
    """The e-mail address in lower case, if it can be one; empty stays empty."""
    if email and (not _EMAIL.fullmatch(email) or unseen(email)):
        raise SettingError(f"{email!r} is no e-mail address; write one like name@example.org")
    return email.lower()


def _account(row: tuple[Any, ...]) -> Account:
    name, role, must_change, disabled, email, subject, created, expires = row
    return Account(
        name=str(name), role=role, must_change=bool(must_change), disabled=bool(disabled), email=str(email),
        subject=str(subject), created=float(created), expires=float(expires),
    )  # fmt: skip
