"""An invitation: the file with which one member joins a federation, once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import SettingError
from tacit.federation.member.address import Credential
from tacit.federation.member.folder import Pinned, read_json
from tacit.federation.member.identity import Role

_FORMAT = "tacit invitation 1"


@dataclass(frozen=True, kw_only=True)
class Invitation:
    """A file that admits one member, once. Whoever has it can join under its name: hand it over in confidence."""

    id: str
    name: str
    role: Role
    expires: float
    nkey_seed: str
    pinned: Pinned

    def __repr__(self) -> str:
        return f"Invitation({self.name!r}, role={self.role!r})"

    @property
    def credential(self) -> Credential:
        """What opens the connection over which the invitation is used."""
        return Credential(name=self.id, nkey_seed=self.nkey_seed)

    def text(self) -> str:
        """The file."""
        form = {
            "format": _FORMAT, "id": self.id, "name": self.name, "role": self.role, "expires": self.expires,
            "secret": self.nkey_seed, **self.pinned.as_dict(),
        }  # fmt: skip
        return json.dumps(form, indent=1) + "\n"

    @staticmethod
    def read(path: Path) -> Invitation:
        """The invitation in a file."""
        match read_json(path):
            case {
                "format": str(found),
                "id": str(id_),
                "name": str(name),
                "role": "party" | "center" as role,
                "expires": int() | float() as expires,
                "secret": str(secret),
                **pinned,
            } if found == _FORMAT:
                known: Role = "party" if role == "party" else "center"
                return Invitation(
                    id=id_, name=name, role=known, expires=float(expires), nkey_seed=secret,
                    pinned=Pinned.from_dict(pinned, str(path)),
                )  # fmt: skip
        raise SettingError(
            f"{path} is not an invitation; ask the coordinator for one (`tacit coordinator invite NAME`)"
        )
