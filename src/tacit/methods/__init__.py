"""The ways to learn: one folder is one method is one document.

In a folder, `method.py` opens with the eight headings; it has the settings and what the coordinator does.
`statistic.py` has the plan and the steps, that is what a party runs. A method is imported when it is first asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import DataError, SettingError

if TYPE_CHECKING:
    from tacit.methods.averaging.method import Averaging
    from tacit.methods.baseline.local import Local
    from tacit.methods.baseline.pooled import Pooled
    from tacit.methods.curator.method import CuratorAveraging
    from tacit.methods.descent.method import NoisyDescent
    from tacit.methods.ensemble.method import Ensemble
    from tacit.methods.functional.method import FunctionalMechanism
    from tacit.methods.method import Method
    from tacit.methods.model_file import ModelFile
    from tacit.methods.newton.method import PrivateNewton
    from tacit.methods.objective.method import ObjectivePerturbation
    from tacit.methods.privlogit.method import PrivLogit
    from tacit.methods.privlogit.secure_newton import SecureNewton
    from tacit.methods.ternary.method import TernaryDescent
    from tacit.methods.transfer.method import HypothesisTransfer

__all__ = [
    "METHODS",
    "Averaging",
    "CuratorAveraging",
    "Ensemble",
    "FunctionalMechanism",
    "HypothesisTransfer",
    "Local",
    "Method",
    "NoisyDescent",
    "ObjectivePerturbation",
    "Pooled",
    "PrivLogit",
    "PrivateNewton",
    "SecureNewton",
    "TernaryDescent",
    "load",
    "make",
]

# Where each method is at home, in the order in which they are shown.
_HOMES = {
    "private-newton": ("PrivateNewton", "newton.method"),
    "privlogit": ("PrivLogit", "privlogit.method"),
    "secure-newton": ("SecureNewton", "privlogit.secure_newton"),
    "pooled": ("Pooled", "baseline.pooled"),
    "local": ("Local", "baseline.local"),
    "averaging": ("Averaging", "averaging.method"),
    "curator-averaging": ("CuratorAveraging", "curator.method"),
    "objective-perturbation": ("ObjectivePerturbation", "objective.method"),
    "functional-mechanism": ("FunctionalMechanism", "functional.method"),
    "noisy-descent": ("NoisyDescent", "descent.method"),
    "ensemble": ("Ensemble", "ensemble.method"),
    "hypothesis-transfer": ("HypothesisTransfer", "transfer.method"),
    "ternary-descent": ("TernaryDescent", "ternary.method"),
}


class _Methods(Mapping[str, "type[Method]"]):
    """The methods by their names."""

    def __getitem__(self, name: str) -> type[Method]:
        cls, home = _HOMES[name]
        found: type[Method] = getattr(import_module(f"tacit.methods.{home}"), cls)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


METHODS: Mapping[str, type[Method]] = _Methods()


def __getattr__(name: str) -> object:
    """A method's class, or `Method` itself, by its own name."""
    homes = dict(_HOMES.values()) | {"Method": "method"}
    if name not in homes:
        raise AttributeError(f"module 'tacit.methods' has no attribute {name!r}")
    return getattr(import_module(f"tacit.methods.{homes[name]}"), name)


def make(name: str, settings: Mapping[str, object] | None = None) -> Method:
    """The method of that name, with settings by their Python names."""
    if name not in METHODS:
        raise SettingError(f"method {name!r} is unknown; {_suggest(name, list(METHODS))}")
    method = METHODS[name]
    known = method._get_param_names()
    for key in settings or {}:
        if key not in known:
            raise SettingError(f"{name} has no setting {key!r}; {_suggest(key, known)}")
    return method(**(settings or {}))


def load(path: str | Path) -> Method:
    """The fitted model that `model.save(path)` wrote.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables({name: hospitals[name] for name in ("north", "south", "west")})
        >>> tacit.PrivateNewton(epsilon=1.0).fit(parties).save("model.json")
        >>> tacit.load("model.json").classes_.tolist()
        ['no', 'yes']
    """
    from tacit.methods.model_file import ModelFile  # with NumPy, which a list of the methods' names does without

    return restored(ModelFile.read(path), str(path))


def restored(file: ModelFile, path: str) -> Method:
    """The fitted model that a file holds; `path` is what errors call it."""
    model = make(file.method, file.facts.settings)
    try:
        return model.take_file(file)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is a damaged model file: {error!r}") from error


def _suggest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
