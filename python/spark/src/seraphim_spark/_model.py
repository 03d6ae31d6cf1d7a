"""The model that an Estimator returns."""

import json
from typing import Any

from pyspark.ml.classification import ProbabilisticClassificationModel
from pyspark.ml.linalg import Matrix, Vector
from pyspark.ml.util import JavaMLWritable
from pyspark.ml.wrapper import JavaModel

from seraphim_spark._java import SeraphimReadable
from seraphim_spark._params import SeraphimParams


class SeraphimModel(JavaModel, ProbabilisticClassificationModel, SeraphimParams, JavaMLWritable, SeraphimReadable):
    """A model that the program has trained.

    `write().save(path)` writes a model directory, which the commands of the program read; `load` reads also those
    that the command line has written.
    """

    @property
    def numFeatures(self) -> int:
        """The size of the vectors of the training; -1 for models of other columns."""
        return self._call_java("numFeatures")

    @property
    def numClasses(self) -> int:
        """The number of classes, which is the size of `rawPrediction` and `probability`."""
        return self._call_java("numClasses")

    def predict(self, value: Vector) -> float:
        """Predicts one record. It starts the program for it: use `transform` for many."""
        return self._call_java("predict", value)

    def predictRaw(self, value: Vector) -> Vector:
        """Returns the raw prediction of one record."""
        return self._call_java("predictRaw", value)

    def predictProbability(self, value: Vector) -> Vector:
        """Returns the probabilities of one record."""
        return self._call_java("predictProbability", value)

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
