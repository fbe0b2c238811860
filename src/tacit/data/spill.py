"""Where DuckDB puts records that do not fit into memory: a folder for its owner's eyes that does not outlive its use.

A folder is removed with its connection. A process that is killed cannot do that. So each folder holds a file that its
process keeps locked, and whoever makes the next folder beside it removes those that nobody locks any more. A party's
daemon has them all in the party's own folder and looks when it starts.

DuckDB's own encryption of temporary files would be better. It needs an extension that would have to be fetched, and
without that extension DuckDB itself calls it unsafe (version 2.0).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from tacit.errors import DataError

_PREFIX = "tacit-spill-"
_LOCK = "lock"


class SpillFolder:
    """A folder for one connection.

    Guarantees:
        Only its owner may look into it. `remove` leaves nothing of it. If the process ends without that, the next
        `sweep` of its parent does.
    """

    def __init__(self, parent: Path | None = None) -> None:
        """Make one in `parent`, which is made too; None takes the system's temporary folder."""
        place = Path(tempfile.gettempdir()) if parent is None else parent
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            sweep(place)
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))  # readable by its owner alone
            self._lock = _locked(self.path)
        except OSError as error:
            raise DataError(f"no temporary folder can be made in {place} ({error.strerror}); make room there") from None

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def sweep(parent: Path) -> None:
    """Remove the folders in `parent` whose process has ended."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.lstat().st_uid != os.geteuid():
                continue
            with (folder / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use, or being made, or another process removes it


def _locked(folder: Path) -> IO[bytes]:
    """The folder's lock, held: under its name it is never seen open."""
    lock = (folder / f"{_LOCK}.new").open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / f"{_LOCK}.new").rename(folder / _LOCK)
    return lock
