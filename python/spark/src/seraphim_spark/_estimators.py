"""The Estimators: one for any algorithm, and the same with other defaults."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Optional, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import keyword_only
from pyspark.ml.util import JavaMLWritable
from pyspark.ml.wrapper import JavaEstimator
from pyspark.sql import DataFrame

from seraphim_spark._failures import SeraphimWarning, failure
from seraphim_spark._java import SeraphimReadable, java_name, new_java_object
from seraphim_spark._model import SeraphimModel
from seraphim_spark._params import SeraphimTrainingParams, Settings

_E = TypeVar("_E", bound="SeraphimEstimator")


class SeraphimEstimator(JavaEstimator, SeraphimTrainingParams, JavaMLWritable, SeraphimReadable):
    """Trains any algorithm of the program on a DataFrame."""

    _default_algorithm: ClassVar[str] = "lr"

    @keyword_only
    def __init__(
        self,
        *,
        algorithm: Optional[str] = None,
        featuresCol: str = "features",
        inputCols: Optional[Sequence[str]] = None,
        labelCol: str = "label",
        weightCol: Optional[str] = None,
        validationIndicatorCol: Optional[str] = None,
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        rawPredictionCol: str = "rawPrediction",
        seed: Optional[int] = None,
        numTasks: Optional[int] = None,
        numWorkers: int = 1,
        threshold: Optional[float] = None,
        thresholds: Optional[Sequence[float]] = None,
        settings: Optional[Settings] = None,
        regParam: Optional[float] = None,
        elasticNetParam: float = 0.0,
        maxIter: Optional[int] = None,
        standardization: bool = True,
    ) -> None:
        super().__init__()
        self._java_obj = new_java_object(java_name(type(self).__name__), self.uid)
        # These are the defaults of the Java class, too.
        self._setDefault(algorithm=self._default_algorithm, seed=1, elasticNetParam=0.0, settings=[], numWorkers=1)
        self.setParams(**self._input_kwargs)

    def setParams(self: _E, **params: Any) -> _E:
        """Sets parameters by their names, as the constructor takes them."""
        return self._set(**params)

    def _fit(self, dataset: DataFrame) -> SeraphimModel:
        try:
            model = super()._fit(dataset)
        except Py4JJavaError as fault:
            raise failure(self.getAlgorithm(), fault) from None
        for notice in model.summary.get("notices", []):
            warnings.warn(f"{self.getAlgorithm()}: {notice}", SeraphimWarning, stacklevel=4)
        return model

    def _create_model(self, java_model: Any) -> SeraphimModel:
        return SeraphimModel(java_model)


class SeraphimLogisticRegression(SeraphimEstimator):
    """Logistic regression of two classes with the labels 0 and 1."""


class SeraphimLinearRegression(SeraphimEstimator):
    """Linear regression with the squared loss."""

    _default_algorithm = "linear"


class SeraphimSoftmaxRegression(SeraphimEstimator):
    """Softmax regression of several classes, whose labels are whole numbers."""

    _default_algorithm = "softmax"
