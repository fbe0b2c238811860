"""An approval: what another person than a study's author signed after reading it, and what parties verify.

The coordinator may be malicious, so nothing that it says of an approval is believed. An approver has a key of its own,
made and kept on the approver's machine. A party's owner lists the fingerprints of those whose word counts
(`approvers` in party.toml), as told by telephone. The party then answers a study only if one of them signed exactly it.

What is signed is the study's digest, which version it is, which digest it replaces, who wrote it and who approves. So:
1. A signature for one study approves no other: the digest differs.
2. A study that was replaced begins no new run at a party that has seen the approval of its next version. Bringing an
   old version back therefore does not work.
3. The author does not approve: both names are signed, and equal ones are refused. A fingerprint is of name and key
   together, so that nobody is shown another name for a key than the one that was told by telephone.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from nacl.signing import SigningKey

from tacit import wire
from tacit.errors import SettingError
from tacit.rand import Rng
from tacit.record import encode_record
from tacit.secure.signature import is_signed
from tacit.storage import make_private_folder, write_json, write_secret
from tacit.visible import unseen

SECRET_FILE = "approver.key"
CARD_FILE = "approver.json"
FORMAT = "tacit approval 1"
MOST_APPROVALS = 16  # of one study: more say no more

_DOMAIN = b"tacit approval 1\0"
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64
_LONGEST_NAME = 100  # characters
_LONGEST_TEXT = 4096  # characters of an approval as it is pasted
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FINGERPRINT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class Approval:
    """One person's signed word that a study is good.

    Attributes:
        study: the digest of the study.
        version: which version of it this is, from 1.
        replaces: the digest of the version before; empty for the first.
        author: who wrote the study, as the approver was told.
        approver: who approves.
        key: the public key of the approver's signature.
        time: when, in seconds since 1970.
        signature: over all of this.
    """

    study: str
    version: int
    replaces: str
    author: str
    approver: str
    key: bytes
    time: float
    signature: bytes = b""

    def __post_init__(self) -> None:
        """Refuse what no approval can say."""
        for words, digest in (("study", self.study), ("replaces", self.replaces or self.study)):
            if not _DIGEST.fullmatch(digest):
                raise SettingError(f"{words} = {digest[:80]!r} of an approval is no digest: 64 digits from 0 to f")
        if self.version < 1:
            raise SettingError(f"version = {self.version} of an approval must be at least 1")
        if self.replaces == self.study:
            raise SettingError("an approval says that a study replaces itself; name the version before it")
        check_person(self.author, "author")
        check_person(self.approver, "approver")
        if same_person(self.author, self.approver):
            raise SettingError(f"{self.author!r} wrote the study; another person must approve it")
        if len(self.key) != _KEY_BYTES or len(self.signature) not in (0, _SIGNATURE_BYTES):
            raise SettingError("an approval has a key or a signature of another length; sign the study again")

    @property
    def fingerprint(self) -> str:
        """A short name of the approver's name and key, to be compared by telephone."""
        return approver_fingerprint(self.approver, self.key)

    @property
    def is_signed(self) -> bool:
        """Whether the holder of the key signed exactly this."""
        return is_signed(self.statement, self.signature, self.key)

    @property
    def statement(self) -> bytes:
        """What is signed."""
        return _DOMAIN + encode_record(replace(self, signature=b""))

    def text(self) -> str:
        """The approval as a file, or as a line to paste."""
        form = asdict(self) | {"key": self.key.hex(), "signature": self.signature.hex()}
        return json.dumps({"format": FORMAT, **form}) + "\n"

    @staticmethod
    def parse(text: str) -> Approval:
        """What `text` wrote, with a signature that holds; a `SettingError` for anything else."""
        if len(text) > _LONGEST_TEXT:
            raise SettingError(f"an approval has {_LONGEST_TEXT:,} characters at most, and this has {len(text):,}")
        try:
            match json.loads(text):
                case {
                    "format": str(found), "study": str(study), "version": int(version), "replaces": str(replaces),
                    "author": str(author), "approver": str(approver), "key": str(key), "time": float(when),
                    "signature": str(signature),
                } if found == FORMAT:  # fmt: skip
                    keys = bytes.fromhex(key), bytes.fromhex(signature)
                case _:
                    raise ValueError
        except (ValueError, RecursionError):  # no JSON, no hexadecimal digits
            raise SettingError("this is no approval; paste what `tacit approver sign` wrote, all of it") from None
        read = Approval(
            study=study, version=version, replaces=replaces, author=author, approver=approver, key=keys[0], time=when,
            signature=keys[1],
        )  # fmt: skip
        if not read.is_signed:
            raise SettingError(f"the signature of {approver!r} does not hold for what it stands under")
        return read


class ApproverKey:
    """An approver's secret. It is made where it is used and never leaves that machine."""

    def __init__(self, name: str, secret: bytes) -> None:
        check_person(name, "name")
        if len(secret) != _KEY_BYTES:
            raise SettingError(f"the secret of {name!r} has {len(secret)} bytes, not {_KEY_BYTES}; restore the file")
        self.name = name
        self._key = SigningKey(secret)

    def __repr__(self) -> str:
        """The name and the public fingerprint: no secret."""
        return f"ApproverKey({self.name!r}, {self.fingerprint})"

    @property
    def public(self) -> bytes:
        """The key with which others verify."""
        return bytes(self._key.verify_key)

    @property
    def fingerprint(self) -> str:
        """What the approver tells others by telephone."""
        return approver_fingerprint(self.name, self.public)

    def approve(self, study: str, *, author: str, version: int = 1, replaces: str = "") -> Approval:
        """Sign that the study with this digest is good."""
        bare = Approval(
            study=study, version=version, replaces=replaces, author=author, approver=self.name, key=self.public,
            time=time.time(),
        )  # fmt: skip
        return replace(bare, signature=bytes(self._key.sign(bare.statement).signature))

    @staticmethod
    def make(name: str, folder: Path) -> ApproverKey:
        """A new key, written to `folder`, readable by its owner alone; an existing one is never written over."""
        secret = Rng.system().bytes(_KEY_BYTES)
        made = ApproverKey(name, secret)
        make_private_folder(folder)
        write_secret(folder / SECRET_FILE, secret.hex() + "\n")
        write_json(folder / CARD_FILE, {"name": name, "fingerprint": made.fingerprint})
        return made

    @staticmethod
    def load(folder: Path) -> ApproverKey:
        """The key that `make` wrote."""
        from tacit.federation.member.folder import (
            read_json,
        )  # with the packages of tacit[net], which policies do without

        path = folder / SECRET_FILE
        try:
            secret = bytes.fromhex(path.read_text(encoding="ascii").strip())
        except OSError as error:
            raise SettingError(
                f"{path} cannot be read ({error.strerror}); run `tacit approver init NAME` first, or name --folder"
            ) from error
        except (UnicodeDecodeError, ValueError):
            raise SettingError(f"{path} is not a secret that Tacit wrote; restore it from your backup") from None
        match read_json(folder / CARD_FILE):
            case {"name": str(name)}:
                return ApproverKey(name, secret)
        raise SettingError(f"{folder / CARD_FILE} is damaged; restore it from your backup")


def valid_approvals(approvals: Sequence[Approval], accepted: Collection[str]) -> list[Approval]:
    """Those that are signed by somebody whose fingerprint is accepted."""
    marks = {plain_fingerprint(mark) for mark in accepted}
    return [one for one in approvals if plain_fingerprint(one.fingerprint) in marks and one.is_signed]


def approver_fingerprint(name: str, key: bytes) -> str:
    """A short name of an approver's name and key: whoever has the same one has both."""
    digest = hashlib.sha256(b"tacit approver\0" + wire.encode([name, key])).hexdigest()
    return " ".join(digest[i : i + 4] for i in range(0, 32, 4))


def plain_fingerprint(mark: str) -> str:
    """A fingerprint without spaces and capitals; a `SettingError` if it is none."""
    plain = "".join(mark.split()).lower()
    if not _FINGERPRINT.fullmatch(plain):
        raise SettingError(f"{mark[:80]!r} is no fingerprint: it has 32 digits from 0 to f, as the approver tells it")
    return plain


def same_person(one: str, other: str) -> bool:
    """Whether two names are one person's: capitals and spaces make no other person."""
    return "".join(one.split()).casefold() == "".join(other.split()).casefold()


def check_person(name: str, what: str) -> None:
    """Refuse a name that nobody can read."""
    if not name.strip() or len(name) > _LONGEST_NAME or unseen(name):
        raise SettingError(f"{what} = {name[:120]!r} must be a name of 1 to {_LONGEST_NAME} characters that are seen")
