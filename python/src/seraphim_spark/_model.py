"""The model that an Estimator returns."""

import json
from typing import Any

from pyspark.ml.linalg import Matrix, Vector
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import JavaMLWritable
from pyspark.ml.wrapper import JavaModel

from seraphim_spark._java import SeraphimReadable
from seraphim_spark._params import SeraphimParams


class SeraphimModel(JavaModel, SeraphimParams, JavaMLWritable, SeraphimReadable):
    """A model that the program has trained.

    `write().save(path)` writes a model directory, which the commands of the program read; `load` reads also those
    that the command line has written.
    """

    numFeatures: "Param[int]" = Param(
        Params._dummy(),
        "numFeatures",
        "size of the vectors of the training",
        typeConverter=TypeConverters.toInt,
    )

    def getNumFeatures(self) -> int:
        """Returns the size of the vectors of the training. Raises KeyError for models of other columns."""
        return self.getOrDefault(self.numFeatures)

    @property
    def algorithm(self) -> str:
        """The algorithm that has trained the model."""
        return self._call_java("algorithm")

    @property
    def coefficients(self) -> Vector:
        """The coefficients of a linear model with one for each feature, for values as they are in the DataFrame."""
        return self._call_java("coefficients")

    @property
    def intercept(self) -> float:
        """The intercept of a linear model with one coefficient for each feature."""
        return self._call_java("intercept")

    @property
    def coefficientMatrix(self) -> Matrix:
        """The coefficients of a linear model: classes x features, with one row if there are no classes."""
        return self._call_java("coefficientMatrix")

    @property
    def interceptVector(self) -> Vector:
        """The intercepts of a linear model, one for each row of `coefficientMatrix`."""
        return self._call_java("interceptVector")

    @property
    def summary(self) -> dict[str, Any]:
        """The report of the training: metrics, timings, settings. It is empty for a model that was read."""
        report = self._call_java("summary")
        return json.loads(report) if report else {}
