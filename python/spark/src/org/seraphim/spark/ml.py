"""The Python classes under the names of their Java classes.

PySpark makes a stage of a Pipeline from its Java object, and imports the Python class by the name of the Java class.
The folders above have no `__init__.py`, so that other distributions may have a package `org` too.
"""

from seraphim_spark import (
    SeraphimEstimator,
    SeraphimLinearRegression,
    SeraphimLogisticRegression,
    SeraphimModel,
    SeraphimSoftmaxRegression,
)

__all__ = [
    "SeraphimEstimator",
    "SeraphimLinearRegression",
    "SeraphimLogisticRegression",
    "SeraphimModel",
    "SeraphimSoftmaxRegression",
]
