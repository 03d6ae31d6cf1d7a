"""Writes the type stub of the package: ``python -m seraphim._stubs > src/seraphim/__init__.pyi``."""

from __future__ import annotations

from seraphim import _classes, errors

HEAD = '''# Written by `python -m seraphim._stubs`.
import os
from typing import Any

from seraphim import _estimators, _recommenders
from seraphim._loops import Cluster as Cluster
from seraphim._loops import Matrix as Matrix
from seraphim._loops import Service as Service
from seraphim._loops import Session as Session
from seraphim._loops import SharedMatrix as SharedMatrix
from seraphim._loops import Task as Task
from seraphim._loops import connect as connect
'''


def type_of(default: object) -> str:
    """The type of a parameter with this default."""
    if isinstance(default, bool):
        return "bool"
    if isinstance(default, (int, float)):
        return "float | str"
    return "str | float | None"


def _classes_of_errors() -> list[str]:
    return [name for name, value in vars(errors).items() if isinstance(value, type)]


def stub() -> str:
    lines = [HEAD.rstrip()]
    lines += [f"from seraphim.errors import {name} as {name}" for name in sorted(_classes_of_errors())]
    lines += ["", "__version__: str", "", "def load(path: str | os.PathLike[str]) -> _estimators.Estimator: ..."]
    for name, estimator in _classes.CLASSES.items():
        base = estimator.__mro__[1]
        module = base.__module__.removeprefix("seraphim.")
        lines += ["", f"class {name}({module}.{base.__name__}):", "    def __init__(", "        self,", "        *,"]
        for parameter, default in estimator.defaults.items():
            lines.append(f"        {parameter}: {type_of(default)} = ...,")
        lines.append("    ) -> None: ...")
        lines += [f"    {parameter}: {type_of(default)}" for parameter, default in estimator.defaults.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(stub(), end="")

