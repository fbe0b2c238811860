"""Who somebody is: one secret on disk, three keys made from it, and what others are told of them.

The key that opens the connection (an nkey) signs whatever the server sends as a challenge. So it is not the key that
signs letters: a server could otherwise have a letter signed by calling it a challenge.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import nkeys  # type: ignore[import-untyped]
from nacl.public import PrivateKey
from nacl.signing import SigningKey

from tacit.errors import SettingError
from tacit.federation.nats.subject import COORDINATOR, check_name
from tacit.rand import Rng
from tacit.secure.signature import is_signed
from tacit.storage import write_secret

Role = Literal["coordinator", "party", "center"]

SECRET_FILE = "identity.key"
_SECRET_BYTES = 32
_NKEY_CHARACTERS = 56


@dataclass(frozen=True, kw_only=True)
class Member:
    """What everybody may know of one member.

    Attributes:
        name: its name in the federation.
        role: what it does.
        nkey: the public key with which it opens connections, as the server's configuration writes it.
        letter_key: the public key of its signatures.
        seal_key: the public key to which values for it are sealed.
    """

    name: str
    role: Role
    nkey: str
    letter_key: bytes
    seal_key: bytes

    def __post_init__(self) -> None:
        if self.name != COORDINATOR:
            check_name(self.name, "the name of a member,")
        keys = (self.letter_key, self.seal_key)
        if any(len(key) != _SECRET_BYTES for key in keys) or not _is_nkey(self.nkey):
            raise SettingError(f"what should be the keys of member {self.name!r} are none; ask for the file again")

    @property
    def fingerprint(self) -> str:
        """A short name of the keys, to be compared by telephone: whoever has the same one has the same keys."""
        digest = hashlib.sha256(b"tacit member" + self.nkey.encode() + self.letter_key + self.seal_key).hexdigest()
        return " ".join(digest[i : i + 4] for i in range(0, 32, 4))

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether this member signed the message."""
        return is_signed(message, signature, self.letter_key)

    def as_dict(self) -> dict[str, str]:
        """The member as JSON holds it."""
        return {
            "name": self.name,
            "role": self.role,
            "nkey": self.nkey,
            "letter_key": self.letter_key.hex(),
            "seal_key": self.seal_key.hex(),
        }

    @staticmethod
    def from_dict(form: Mapping[str, object]) -> Member:
        """The member that `as_dict` wrote; a `SettingError` for anything else."""
        match dict(form):
            case {
                "name": str(name),
                "role": str(role),
                "nkey": str(nkey),
                "letter_key": str(letter_key),
                "seal_key": str(seal_key),
            } if role in get_args(Role):
                try:
                    keys = bytes.fromhex(letter_key), bytes.fromhex(seal_key)
                except ValueError:
                    keys = b"", b""  # are refused as keys
                known: Role = "party" if role == "party" else "center" if role == "center" else "coordinator"
                return Member(name=name, role=known, nkey=nkey, letter_key=keys[0], seal_key=keys[1])
        raise SettingError("what should describe a member of the federation does not; ask for the file again")


class Identity:
    """A member's secret. It is made where it is used and never leaves that machine."""

    def __init__(self, name: str, role: Role, secret: bytes) -> None:
        if len(secret) != _SECRET_BYTES:
            raise SettingError(f"the secret of {name!r} has {len(secret)} bytes, not {_SECRET_BYTES}; restore the file")
        self._letter_key = SigningKey(_derive(secret, b"letter"))
        self._nkey_seed: str = nkeys.encode_seed(_derive(secret, b"nkey"), nkeys.PREFIX_BYTE_USER).decode()
        seal_key = PrivateKey(_derive(secret, b"seal"))
        self.member = Member(
            name=name,
            role=role,
            nkey=nkeys.from_seed(bytearray(self._nkey_seed.encode())).public_key.decode(),
            letter_key=bytes(self._letter_key.verify_key),
            seal_key=bytes(seal_key.public_key),
        )

    @property
    def name(self) -> str:
        """The member's name."""
        return self.member.name

    @property
    def nkey_seed(self) -> str:
        """The secret with which the connection is opened, for the client library."""
        return self._nkey_seed

    def sign(self, message: bytes) -> bytes:
        """The signature of a letter."""
        return bytes(self._letter_key.sign(message).signature)

    def __repr__(self) -> str:
        """The name and the public fingerprint: no secret."""
        return f"Identity({self.name!r}, {self.member.fingerprint})"

    @classmethod
    def make(cls, name: str, role: Role, folder: Path) -> Identity:
        """A new identity, written to `folder`, readable by its owner alone; an existing one is never written over."""
        secret = Rng.system().bytes(_SECRET_BYTES)
        write_secret(folder / SECRET_FILE, secret.hex() + "\n")
        return cls(name, role, secret)

    @classmethod
    def load(cls, name: str, role: Role, folder: Path) -> Identity:
        """The identity that `make` wrote."""
        path = folder / SECRET_FILE
        try:
            return cls(name, role, bytes.fromhex(path.read_text(encoding="ascii").strip()))
        except OSError as error:
            raise SettingError(
                f"{path} cannot be read ({error.strerror}); run `tacit {role} init` first, or name another --folder"
            ) from error
        except (UnicodeDecodeError, ValueError):
            raise SettingError(f"{path} is not a secret that Tacit wrote; restore it from your backup") from None


def _derive(secret: bytes, purpose: bytes) -> bytes:
    """An independent secret for one purpose (BLAKE2b as a keyed function)."""
    return hashlib.blake2b(purpose, key=secret, digest_size=_SECRET_BYTES, person=b"tacit identity").digest()


def _is_nkey(text: str) -> bool:
    """Whether a text is a public user key: it goes into the server's configuration, so nothing else may."""
    if len(text) != _NKEY_CHARACTERS or not text.startswith("U"):
        return False
    try:
        raw = base64.b32decode(text)
    except binascii.Error:
        return False
    checksum: bytes = nkeys.crc16(bytearray(raw[:-2])).to_bytes(2, "little")
    return checksum == raw[-2:]
