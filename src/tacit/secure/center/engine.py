"""The engine: one node's side of a secure computation, by SPU.

Three nodes compute with ABY3 (Mohassel and Rindal 2018), over 128 bits with 40 fraction bits. SPU and jax are imported
when an engine is made, so that whoever only seals or adds needs neither.

Engines speak through sockets in a folder that only the node's account may enter; between machines a `tunnel` stands
behind them. The library's own TLS is not used: its server takes plain text beside it and cannot tell its peers apart.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tacit.errors import CenterError, SettingError
from tacit.secure.center import layout
from tacit.secure.center.conversation import Conversation, NodeKeys
from tacit.secure.center.frame import MAX_FRAME
from tacit.secure.center.program import Program
from tacit.secure.ring import Floats
from tacit.secure.share import FRACTION_BITS, N_NODES, Shared

VERSION = "0.9.5"  # of SPU: the layout of shares is held to it

_RECEIVE_SECONDS = 600  # a peer may be compiling, or on a slow machine; a dead one is noticed by its closed pipe
_CONNECT_INTERVAL_MS = 100


@dataclass(frozen=True, kw_only=True)
class EngineLink:
    """How a node reaches the others: through one socket for each in the working folder (`enter_folder`).

    Attributes:
        rank: this node's place among them.
        patience_seconds: how long the others may take to appear.
        signers: how nodes sign what they tell each other; None on one machine.
    """

    rank: int
    patience_seconds: float
    signers: NodeKeys | None = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """A program that is about to run: on which shares, with which public arguments."""

    program: Program
    inputs: Mapping[str, Shared]
    public: Mapping[str, Floats]
    fixed: Mapping[str, int]


class SecureEngine:
    """Runs programs on this node's shares, together with the engines of the other nodes.

    Attributes:
        n_compiled: how many programs were compiled so far.
    """

    def __init__(self, link: EngineLink) -> None:
        """Connect to the other nodes; waits until all are there."""
        self._spu = _load()
        self.rank = link.rank
        self.n_compiled = 0
        self._config = self._configure()
        self._link = self._connect(link)
        self._conversation = Conversation(link.rank, self._link, link.signers)
        self._runtime = self._spu.RuntimeWrapper(self._link, self._config)
        self._io = self._spu.IoWrapper(N_NODES, self._config)
        self._compiled: dict[object, Any] = {}

    def agree(self, what: str, shares: Sequence[Shared]) -> bool:
        """Whether every node is about to do the same, on shares that fit each other.

        A computation that only some nodes began would never end, and one on parts that differ where two nodes hold the
        same would give anything.
        """
        fits = self._same_parts(shares)
        return self._conversation.all_say(what if fits else None)

    def refuse(self) -> None:
        """Let the other nodes' `agree` be false."""
        self._same_parts(())
        self._conversation.all_say(None)

    def _same_parts(self, shares: Sequence[Shared]) -> bool:
        """Whether the node before holds as its last parts what this node holds as its first."""
        first, last = hashlib.sha256(), hashlib.sha256()
        for shared in shares:
            first.update(shared.words[0].tobytes())
            last.update(shared.words[-1].tobytes())
        self.send((self.rank + 1) % N_NODES, last.digest())  # tells the next node nothing that it does not hold
        return self.receive((self.rank - 1) % N_NODES) == first.digest()

    def send(self, rank: int, message: bytes) -> None:
        """Give a message to one node."""
        self._conversation.send(rank, message)

    def receive(self, rank: int) -> bytes:
        """The next message from one node."""
        return self._conversation.receive(rank)

    def prepare(self, task: Task) -> Any:
        """Compile the task's program for the shapes of its inputs, unless it was.

        Raises:
            CenterError: if the program cannot run on those shapes.
        """
        shapes = [shared.shape for shared in task.inputs.values()] + [value.shape for value in task.public.values()]
        key = (task.program.name, tuple(shapes), tuple(task.public), tuple(sorted(task.fixed.items())))
        if key not in self._compiled:
            try:
                self._compiled[key] = self._compile(task, shapes)
            except (TypeError, ValueError) as error:
                text = ", ".join(map(str, shapes))
                raise CenterError(f"program {task.program.name!r} cannot run on shapes {text}") from error
            self.n_compiled += 1
        return self._compiled[key]

    def run(self, task: Task) -> dict[str, Shared]:
        """This node's shares of what the program keeps and opens; the other nodes run the same at the same time."""
        executable = self.prepare(task)
        names = list(executable.input_names)
        for name, shared in zip(names, task.inputs.values(), strict=False):
            share = self._spu.Share()
            share.meta = layout.describe(shared.shape)
            share.share_chunks = layout.pack(shared)
            self._runtime.SetVar(name, share)
        for name, value in zip(names[len(task.inputs) :], task.public.values(), strict=True):
            self._runtime.SetVar(name, self._io.MakeShares(value, self._spu.Visibility.VIS_PUBLIC, -1)[self.rank])
        self._runtime.Run(executable)
        outputs = {}
        for name, variable in zip(task.program.keeps + task.program.opens, executable.output_names, strict=True):
            share = self._runtime.GetVar(variable)
            outputs[name] = layout.unpack(share.meta, share.share_chunks)
        for variable in (*executable.input_names, *executable.output_names):
            self._runtime.DelVar(variable)
        return outputs

    def stop(self) -> None:
        """Leave, when every node is about to leave."""
        self._link.stop_link()

    def _configure(self) -> Any:
        spu = self._spu
        config = spu.RuntimeConfig(
            protocol=spu.ProtocolKind.ABY3, field=spu.FieldType.FM128, fxp_fraction_bits=FRACTION_BITS
        )
        # A node that truncates by itself errs in the highest bit once in a while, which ruins the number.
        config.trunc_allow_msb_error = False
        return config

    def _connect(self, link: EngineLink) -> Any:
        spu = self._spu
        description = spu.link.Desc()
        description.id = "tacit"
        description.recv_timeout_ms = _RECEIVE_SECONDS * 1000
        description.http_timeout_ms = _RECEIVE_SECONDS * 1000
        description.connect_retry_times = math.ceil(link.patience_seconds * 1000 / _CONNECT_INTERVAL_MS)
        description.connect_retry_interval_ms = _CONNECT_INTERVAL_MS
        description.http_max_payload_size = MAX_FRAME  # every message whole: see `frame`
        for rank in range(N_NODES):
            description.add_party(f"node{rank}", f"unix:{socket_name(rank)}")
        Path(socket_name(link.rank)).unlink(missing_ok=True)  # of an engine that was killed
        return spu.link.create_brpc(description, link.rank)

    def _compile(self, task: Task, shapes: list[tuple[int, ...]]) -> Any:
        work, public, fixed = task.program.function, tuple(task.public), task.fixed
        assert work is not None  # what needs no engine never gets here
        jax = importlib.import_module("jax")
        frontend = importlib.import_module("spu.utils.frontend")
        n_secret = len(shapes) - len(public)
        visibility = self._spu.Visibility

        @functools.wraps(work)
        def function(*arrays: Any) -> Any:
            arguments = dict(zip(public, arrays[n_secret:], strict=True))
            return work(*arrays[:n_secret], **arguments, **fixed)

        with jax.experimental.enable_x64():
            executable, _ = frontend.compile(
                frontend.Kind.JAX,
                function,
                [jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes],
                {},
                [f"in{i}" for i in range(len(shapes))],
                [visibility.VIS_SECRET] * n_secret + [visibility.VIS_PUBLIC] * len(public),
                lambda outputs: [f"out{i}" for i in range(len(outputs))],
            )
        return executable


def socket_name(rank: int) -> str:
    """The socket that stands for the engine of node `rank`, in the working folder."""
    return f"{rank}.sock"


def enter_folder(folder: Path) -> None:
    """Make the folder of a node's sockets the process's working folder, for its account alone.

    A socket's name has room for about 100 characters; a folder's path may need more.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    os.chdir(folder)


def require() -> None:
    """Check, without loading it, that SPU is there.

    Raises:
        SettingError: if SPU or jax is not installed, or SPU in a version whose layout of shares is not known.
    """
    try:
        found = importlib.metadata.version("spu")
        importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError as error:
        raise SettingError(
            "this method computes on shares, which needs SPU and jax: pip install 'tacit[secure]'"
        ) from error
    if found != VERSION:
        raise SettingError(f"SPU {found} is installed, {VERSION} is needed: pip install 'tacit[secure]'")


def _load() -> ModuleType:
    require()
    spu = importlib.import_module("spu.libspu")
    options = spu.logging.LogOptions()
    options.enable_console_logger = False
    options.system_log_path = options.trace_log_path = os.devnull
    options.log_level = spu.logging.LogLevel.ERROR
    spu.logging.setup_logging(options)
    return spu
