"""A command in a process of its own that stops in order when the process that started it is gone.

    python -m tacit.cli.network.practice_child DESCRIPTOR WORD...

DESCRIPTOR is this end of a pipe; the WORDs are those of a `tacit` command.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading

from tacit.cli.main import main


def _stop_with(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLHUP)
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until the daemon takes over: the keyboard is the starter's
    threading.Thread(target=_stop_with, args=(int(sys.argv[1]),), daemon=True).start()
    main(sys.argv[2:])
