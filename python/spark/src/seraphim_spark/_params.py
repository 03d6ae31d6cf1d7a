"""The parameters, with the names that they have in Scala."""

from collections.abc import Mapping, Sequence
from typing import TypeVar, Union

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasElasticNetParam,
    HasFeaturesCol,
    HasInputCols,
    HasLabelCol,
    HasMaxIter,
    HasPredictionCol,
    HasProbabilityCol,
    HasRawPredictionCol,
    HasRegParam,
    HasSeed,
    HasStandardization,
    HasThresholds,
    HasValidationIndicatorCol,
    HasWeightCol,
)

from seraphim_spark._settings import to_settings

Settings = Union[Mapping[str, object], Sequence[str]]
_S = TypeVar("_S", bound="SeraphimParams")
_T = TypeVar("_T", bound="SeraphimTrainingParams")


class SeraphimParams(
    HasProbabilityCol, HasThresholds, HasRawPredictionCol, HasFeaturesCol, HasPredictionCol, HasInputCols
):
    """The parameters that estimators and models share."""

    threshold: "Param[float]" = Param(
        Params._dummy(),
        "threshold",
        "the second of two classes is predicted above it: a probability, or for svm the raw prediction "
        "[default: 0.5, svm 0]",
        typeConverter=TypeConverters.toFloat,
    )

    def setFeaturesCol(self: _S, value: str) -> _S:
        """Sets the column of vectors."""
        return self._set(featuresCol=value)

    def setInputCols(self: _S, value: Sequence[str]) -> _S:
        """Sets columns of numbers, booleans and strings as features, instead of a vector."""
        return self._set(inputCols=list(value))

    def setPredictionCol(self: _S, value: str) -> _S:
        """Sets the name of the column with the predictions."""
        return self._set(predictionCol=value)

    def setProbabilityCol(self: _S, value: str) -> _S:
        """Sets the name of the column with a vector of probabilities."""
        return self._set(probabilityCol=value)

    def setRawPredictionCol(self: _S, value: str) -> _S:
        """Sets the name of the column with a vector of scores."""
        return self._set(rawPredictionCol=value)

    def setThreshold(self: _S, value: float) -> _S:
        """Sets the threshold: the second class is predicted above it, a probability or the raw prediction of svm."""
        return self._set(threshold=value)

    def getThreshold(self) -> float:
        """Returns the threshold. Raises KeyError if it is not set."""
        return self.getOrDefault(self.threshold)

    def setThresholds(self: _S, value: Sequence[float]) -> _S:
        """Sets one threshold for each class: the class with the largest probability over it is predicted."""
        return self._set(thresholds=list(value))


class SeraphimTrainingParams(
    SeraphimParams,
    HasLabelCol,
    HasWeightCol,
    HasValidationIndicatorCol,
    HasSeed,
    HasRegParam,
    HasElasticNetParam,
    HasMaxIter,
    HasStandardization,
):
    """The parameters of a training."""

    algorithm: "Param[str]" = Param(
        Params._dummy(),
        "algorithm",
        "the algorithm, as `seraphim algorithms` lists them",
        typeConverter=TypeConverters.toString,
    )
    settings: "Param[list[str]]" = Param(
        Params._dummy(),
        "settings",
        "parameters of the algorithm as name=value, or as a dict",
        typeConverter=to_settings,
    )
    numTasks: "Param[int]" = Param(
        Params._dummy(),
        "numTasks",
        "number of tasks [default: from the size of the data]",
        typeConverter=TypeConverters.toInt,
    )

    numWorkers: "Param[int]" = Param(
        Params._dummy(),
        "numWorkers",
        "number of executors that train together",
        typeConverter=TypeConverters.toInt,
    )

    def setAlgorithm(self: _T, value: str) -> _T:
        """Sets the algorithm: lr, svm, linear, huber, softmax, fm, ffm or kmeans."""
        return self._set(algorithm=value)

    def getAlgorithm(self) -> str:
        """Returns the name of the algorithm."""
        return self.getOrDefault(self.algorithm)

    def setSettings(self: _T, value: Settings) -> _T:
        """Sets parameters of the algorithm; `seraphim algorithms NAME` lists them."""
        return self._set(settings=value)

    def getSettings(self) -> list[str]:
        """Returns the parameters of the algorithm as name=value."""
        return self.getOrDefault(self.settings)

    def setNumTasks(self: _T, value: int) -> _T:
        """Sets the number of tasks, which is part of the job: another number gives another model."""
        return self._set(numTasks=value)

    def getNumTasks(self) -> int:
        """Returns the number of tasks."""
        return self.getOrDefault(self.numTasks)

    def setNumWorkers(self: _T, value: int) -> _T:
        """Sets the number of executors that train together."""
        return self._set(numWorkers=value)

    def getNumWorkers(self) -> int:
        """Returns the number of executors that train together."""
        return self.getOrDefault(self.numWorkers)

    def setLabelCol(self: _T, value: str) -> _T:
        """Sets the column of labels."""
        return self._set(labelCol=value)

    def setWeightCol(self: _T, value: str) -> _T:
        """Sets the column of weights."""
        return self._set(weightCol=value)

    def setValidationIndicatorCol(self: _T, value: str) -> _T:
        """Sets a column of booleans, which are true for records that only validate."""
        return self._set(validationIndicatorCol=value)

    def setSeed(self: _T, value: int) -> _T:
        """Sets the seed."""
        return self._set(seed=value)

    def setRegParam(self: _T, value: float) -> _T:
        """Sets the weight of the penalty of Spark ML; it is for lr, softmax and linear."""
        return self._set(regParam=value)

    def setElasticNetParam(self: _T, value: float) -> _T:
        """Sets the share of the L1 penalty of Spark ML; it is for lr, softmax and linear."""
        return self._set(elasticNetParam=value)

    def setMaxIter(self: _T, value: int) -> _T:
        """Sets the largest number of iterations of Spark ML; it is for lr, softmax and linear."""
        return self._set(maxIter=value)

    def setStandardization(self: _T, value: bool) -> _T:
        """Sets whether Spark ML's penalty is that of standardized columns; it is for lr, softmax and linear."""
        return self._set(standardization=value)
