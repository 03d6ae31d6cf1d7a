"""Estimators of Seraphim for PySpark."""

from seraphim_spark._version import check_pyspark

check_pyspark()

from seraphim_spark._jars import configure, jars  # noqa: E402
from seraphim_spark._estimators import (  # noqa: E402
    SeraphimEstimator,
    SeraphimLinearRegression,
    SeraphimLogisticRegression,
    SeraphimSoftmaxRegression,
)
from seraphim_spark._failures import ProgramFailure, SeraphimWarning  # noqa: E402
from seraphim_spark._model import SeraphimModel  # noqa: E402

__all__ = [
    "ProgramFailure",
    "SeraphimEstimator",
    "SeraphimLinearRegression",
    "SeraphimLogisticRegression",
    "SeraphimModel",
    "SeraphimSoftmaxRegression",
    "SeraphimWarning",
    "configure",
    "jars",
]
