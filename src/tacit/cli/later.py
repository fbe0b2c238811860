"""Imports that wait until they are needed.

scikit-learn imports `scipy.stats` for a function that no command calls, and the data layer imports pandas for tables
that `tacit party init` does not read. Together they take most of a second, and each process of a federation pays it. So
stand-ins take their places until somebody asks them for anything.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_later(name: str) -> None:
    """Let `import name` cost nothing until an attribute of the module is asked for.

    The module is not part of a package, or of one that finds its modules by itself, as scipy does.

    Guarantees:
        Whatever is asked of the module is what the module itself gives; one that was imported already stays.
    """
    if name not in sys.modules:
        sys.modules[name] = _StandIn(name)
