"""Tokens for scripts: each speaks for an account, with that account's role or a lower one."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, replace

from tacit.errors import SettingError
from tacit.rand import Rng
from tacit.storage import Database
from tacit.visible import unseen
from tacit.web.account import ROLES, Account, Accounts, Role, checked_role

MOST_DAYS = 366.0
_MOST_TOKENS = 50  # of one account
_START = "tacit"
_USED_EVERY = 60.0


@dataclass(frozen=True, kw_only=True)
class ApiToken:
    """A token, as its owner sees it later: everything but the secret."""

    id: str
    account: str
    role: Role
    label: str
    created: float
    expires: float
    used: float


class ApiTokens:
    """The tokens of a site.

    Guarantees:
        A token's secret is shown once and kept as its hash. A token may do no more than its own role, nor than its
        account may at that moment; a disabled account's tokens do nothing.
    """

    def __init__(self, database: Database, accounts: Accounts) -> None:
        self._database = database
        self._accounts = accounts

    def make(self, account: Account, *, role: str, label: str, days: float) -> str:
        """A new token; this is the only time that its text is told."""
        checked_role(role)
        if not account.may(role):  # type: ignore[arg-type]
            raise SettingError(f"a token of yours cannot have the role {role!r}; yours is {account.role}")
        if not label.strip() or len(label) > 80 or unseen(label):
            raise SettingError("say in up to 80 characters, on one line, what the token is for")
        if not 0 < days <= MOST_DAYS:
            raise SettingError(f"a token is good for up to {MOST_DAYS:g} days, not for {days:g}")
        id_, secret, now = Rng.system().bytes(6).hex(), Rng.system().bytes(32).hex(), time.time()
        row = (id_, _hash(secret), account.name, role, label.strip(), now, now + days * 86400, 0.0)
        with self._database.transaction() as database:
            database.execute("DELETE FROM token WHERE expires < ?", (now - 30 * 86400,))
            if len(self.of(account.name)) >= _MOST_TOKENS:
                raise SettingError(f"you have {_MOST_TOKENS} tokens already; revoke one first")
            database.execute("INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        return f"{_START}_{id_}_{secret}"

    def account_of(self, text: str) -> Account | None:
        """The account that a token speaks for, with the role that it has by this token; None if it is void."""
        start, id_, secret = [*text.split("_", 2), "", ""][:3]
        row = self._database.execute(
            "SELECT hash, account, role, expires, used FROM token WHERE id = ?", (id_[:64],)
        ).fetchone()
        if (
            row is None
            or start != _START
            or not hmac.compare_digest(bytes(row[0]), _hash(secret))
            or row[3] < time.time()
        ):
            return None
        account = self._accounts.find(row[1])
        if account is None or account.disabled:
            return None
        if row[4] < time.time() - _USED_EVERY:
            self._database.execute("UPDATE token SET used = ? WHERE id = ?", (time.time(), id_))
        return replace(account, role=min(row[2], account.role, key=ROLES.index))

    def of(self, account: str) -> list[ApiToken]:
        """The tokens of an account, the newest first."""
        rows = self._database.execute(
            "SELECT id, account, role, label, created, expires, used FROM token WHERE account = ? "
            "ORDER BY created DESC",
            (account,),
        )
        names = ("id", "account", "role", "label", "created", "expires", "used")
        return [ApiToken(**dict(zip(names, row, strict=True))) for row in rows]

    def revoke(self, account: str, id_: str) -> bool:
        """Make a token of this account void; False if it has none of this id."""
        cursor = self._database.execute("DELETE FROM token WHERE id = ? AND account = ?", (id_, account))
        return cursor.rowcount > 0


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
