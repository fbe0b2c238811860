"""A node's own key, to which parties seal: made once, in the node's folder."""

from __future__ import annotations

from pathlib import Path

from nacl.public import PrivateKey

from tacit.storage import write_secret

KEY_FILE = "node.key"


def key_of(home: Path) -> PrivateKey:
    """The node's key, made once; only the node's own account can read it."""
    path = home / KEY_FILE
    if path.exists():
        return PrivateKey(path.read_bytes())
    key = PrivateKey.generate()
    write_secret(path, bytes(key))
    return key
