"""The model that an Estimator returns."""

import json
from typing import Any

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
    def summary(self) -> dict[str, Any]:
        """The report of the training: metrics, timings, settings. It is empty for a model that was read."""
        report = self._call_java("summary")
        return json.loads(report) if report else {}
