"""Machine learning around a parameter server, on a laptop and on clusters.

>>> import numpy as np
>>> from seraphim import LogisticRegression
>>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
>>> model = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
>>> model.predict([[0.0], [3.0]]).tolist()
['no', 'yes']
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from seraphim import _native
from seraphim.errors import (
    DataError,
    InternalError,
    InterruptedRunError,
    ModelError,
    NotFittedError,
    SeraphimError,
    SeraphimWarning,
    SettingError,
    StorageError,
)

__version__: str = _native.__version__

_ERRORS = [
    "DataError",
    "InternalError",
    "InterruptedRunError",
    "ModelError",
    "NotFittedError",
    "SeraphimError",
    "SeraphimWarning",
    "SettingError",
    "StorageError",
]


_LOOPS = ["Cluster", "Matrix", "Service", "Session", "SharedMatrix", "Task", "connect"]


# Estimators and loops need numpy, which takes longer to import than all else here: they are made when they are asked for.
def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module 'seraphim' has no attribute {name!r}")
    # Not `from seraphim import`, which would ask this function.
    if name in _LOOPS:
        return getattr(import_module("seraphim._loops"), name)
    _classes = import_module("seraphim._classes")
    if name == "__all__":
        return [*_classes.CLASSES, "load", *_LOOPS, *_ERRORS]
    if name == "load":
        return _classes.load
    try:
        return _classes.CLASSES[name]
    except KeyError:
        raise AttributeError(f"module 'seraphim' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*globals(), *__getattr__("__all__")])
