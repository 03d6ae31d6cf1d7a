"""Estimators and the model in a Spark session with the jars and the program."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import OneVsRest, ProbabilisticClassificationModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import Vectors
from pyspark.ml.tuning import CrossValidator, CrossValidatorModel, ParamGridBuilder
from pyspark.sql import DataFrame, SparkSession

from seraphim_spark import (
    ProgramFailure,
    SeraphimEstimator,
    SeraphimLinearRegression,
    SeraphimLogisticRegression,
    SeraphimModel,
    SeraphimSoftmaxRegression,
    SeraphimWarning,
)

ESTIMATORS = [SeraphimEstimator, SeraphimLinearRegression, SeraphimLogisticRegression, SeraphimSoftmaxRegression]

# Another value than the default for each parameter.
PARAMS: dict[str, Any] = {
    "algorithm": "svm",
    "featuresCol": "f",
    "inputCols": ["a", "b"],
    "labelCol": "l",
    "weightCol": "w",
    "validationIndicatorCol": "v",
    "predictionCol": "p",
    "probabilityCol": "q",
    "rawPredictionCol": "r",
    "seed": 7,
    "numTasks": 3,
    "numWorkers": 3,
    "threshold": 0.25,
    "settings": ["epochs=3", "optimizer=adagrad"],
    "regParam": 0.5,
    "elasticNetParam": 0.25,
    "maxIter": 9,
    "standardization": False,
    "thresholds": [0.25, 0.75],
}

# The points can be separated by a line, so that few are on the wrong side of the learned one.
ACCURACY = 0.95


def _share_of_right(scored: DataFrame) -> float:
    return scored.filter("prediction = label").count() / scored.count()


def _in_java(estimator: SeraphimEstimator, name: str) -> Any:
    java = estimator._to_java()
    value = java.getOrDefault(java.getParam(name))
    return list(value) if isinstance(PARAMS[name], list) else value


def test_logistic_regression_learns(vectors: DataFrame) -> None:
    model = SeraphimLogisticRegression(regParam=0.001, maxIter=50).fit(vectors)
    scored = model.transform(vectors)
    assert scored.columns[-3:] == ["rawPrediction", "probability", "prediction"]
    assert _share_of_right(scored) > ACCURACY
    assert model.algorithm == "lr"
    assert model.summary["algorithm"] == "lr"
    assert model.numFeatures == 2
    first, second = model.coefficients
    assert first > 0 and second > 0 and model.coefficientMatrix.numRows == 1
    assert model.interceptVector[0] == model.intercept


def test_other_estimators_have_their_algorithms(vectors: DataFrame) -> None:
    linear = SeraphimLinearRegression(labelCol="height").fit(vectors)
    assert linear.algorithm == "linear"
    assert linear.transform(vectors).filter("abs(prediction - height) < 0.1").count() == vectors.count()
    softmax = SeraphimSoftmaxRegression().fit(vectors)
    assert softmax.algorithm == "softmax"
    assert _share_of_right(softmax.transform(vectors)) > ACCURACY


def test_the_generic_estimator_takes_any_algorithm(points: DataFrame) -> None:
    estimator = SeraphimEstimator(algorithm="fm", inputCols=["a", "b"], validationIndicatorCol="validates")
    model = estimator.fit(points)
    assert model.algorithm == "fm"
    assert _share_of_right(model.transform(points)) > ACCURACY


def test_two_executors_train_together(vectors: DataFrame) -> None:
    model = SeraphimLogisticRegression(numWorkers=2).fit(vectors)
    assert _share_of_right(model.transform(vectors)) > ACCURACY
    with pytest.raises(Exception, match="numWorkers is 3, and this session runs at most 2 tasks at once"):
        SeraphimLogisticRegression(numWorkers=3).fit(vectors)


def test_each_parameter_reaches_java(spark: SparkSession) -> None:
    estimator = SeraphimEstimator(**PARAMS)
    assert {name: _in_java(estimator, name) for name in PARAMS} == PARAMS


def test_python_and_java_have_the_same_parameters_and_defaults(spark: SparkSession) -> None:
    for kind in ESTIMATORS:
        estimator = kind()
        java = estimator._java_obj
        assert sorted(param.name for param in estimator.params) == sorted(param.name() for param in java.params())
        for param in estimator.params:
            java_param = java.getParam(param.name)
            assert estimator.hasDefault(param) == java.hasDefault(java_param), param.name
            if estimator.hasDefault(param):
                expected = java.getDefault(java_param).get()
                value = estimator.getOrDefault(param)
                assert value == (list(expected) if isinstance(value, list) else expected), param.name


def test_python_and_java_have_the_same_parameters_of_models(vectors: DataFrame) -> None:
    model = SeraphimLogisticRegression(maxIter=1).fit(vectors)
    assert sorted(param.name for param in model.params) == sorted(param.name() for param in model._java_obj.params())


def test_setters_do_what_the_constructor_does(spark: SparkSession) -> None:
    estimator = SeraphimEstimator()
    for name, value in PARAMS.items():
        getattr(estimator, f"set{name[0].upper()}{name[1:]}")(value)
    assert {name: estimator.getOrDefault(name) for name in PARAMS} == PARAMS


def test_settings_as_a_dict_reach_the_program(vectors: DataFrame) -> None:
    estimator = SeraphimEstimator(settings={"optimizer": "adagrad", "epochs": 2, "standardize": False})
    assert estimator.getSettings() == ["optimizer=adagrad", "epochs=2", "standardize=false"]
    settings = estimator.fit(vectors).summary["settings"]
    assert settings["optimizer"] == "adagrad"
    assert settings["standardize"] == "false"


def test_an_unknown_setting_is_an_error_of_the_program(vectors: DataFrame) -> None:
    with pytest.raises(ProgramFailure, match="did you mean learning_rate") as fault:
        SeraphimEstimator(settings={"lerning_rate": 1}).fit(vectors)
    assert "\tat " not in str(fault.value), "no stack of Java"


def test_notices_are_warnings_that_name_no_file(spark: SparkSession) -> None:
    rows = [(float(n % 2), Vectors.dense(float(n // 2 % 2))) for n in range(40)]
    frame = spark.createDataFrame(rows, ["label", "features"])
    with pytest.warns(SeraphimWarning, match="learned nothing") as caught:
        SeraphimLogisticRegression().fit(frame)
    assert all("seraphim-fit" not in str(one.message) for one in caught)


def test_a_model_is_a_classification_model(vectors: DataFrame) -> None:
    model = SeraphimLogisticRegression().fit(vectors)
    assert isinstance(model, ProbabilisticClassificationModel)
    record = Vectors.dense(3.0, 3.0)
    assert (model.numClasses, model.predict(record)) == (2, 1.0)
    assert model.predictRaw(record)[1] > 0 and model.predictProbability(record)[1] > 0.5
    assert _share_of_right(model.setThreshold(1.0).transform(vectors)) < ACCURACY
    rest = OneVsRest(classifier=SeraphimLogisticRegression()).fit(vectors)
    assert _share_of_right(rest.transform(vectors)) > ACCURACY


def test_only_keywords_are_arguments(spark: SparkSession) -> None:
    with pytest.raises(TypeError):
        SeraphimEstimator("lr")  # type: ignore[misc]


def test_a_saved_model_scores_the_same(vectors: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    model = SeraphimLogisticRegression(predictionCol="guess").fit(vectors)
    model.write().overwrite().save(path)
    model.write().overwrite().save(path)
    again = SeraphimModel.load(path)
    assert again.getPredictionCol() == "guess"
    assert again.uid == model.uid
    assert again.summary == {}
    assert again.numFeatures == 2
    rows = [kind.transform(vectors).select("guess", "probability").collect() for kind in (model, again)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_saved_estimator_keeps_its_parameters(
    spark: SparkSession, tmp_path: Path, kind: type[SeraphimEstimator]
) -> None:
    path = str(tmp_path / "estimator")
    kind(**PARAMS).write().overwrite().save(path)
    again = kind.load(path)
    assert type(again) is kind
    assert {name: again.getOrDefault(name) for name in PARAMS} == PARAMS


def test_a_pipeline_keeps_its_stages(points: DataFrame, tmp_path: Path) -> None:
    stages = [
        VectorAssembler(inputCols=["a", "b"], outputCol="features"),
        SeraphimLogisticRegression(settings={"epochs": 5}),
    ]
    pipeline = Pipeline(stages=stages)
    pipeline.write().overwrite().save(str(tmp_path / "pipeline"))
    again = Pipeline.load(str(tmp_path / "pipeline"))
    assert again.getStages()[1].getSettings() == ["epochs=5"]
    model = again.fit(points)
    model.write().overwrite().save(str(tmp_path / "model"))
    loaded = PipelineModel.load(str(tmp_path / "model"))
    assert isinstance(loaded.stages[1], SeraphimModel)
    assert loaded.transform(points).collect() == model.transform(points).collect()


def test_cross_validation_chooses_the_smaller_penalty(points: DataFrame, tmp_path: Path) -> None:
    assembler = VectorAssembler(inputCols=["a", "b"], outputCol="features")
    estimator = SeraphimLogisticRegression(maxIter=20)
    grid = ParamGridBuilder().addGrid(estimator.regParam, [0.001, 10.0]).build()
    pipeline = Pipeline(stages=[assembler, estimator])
    validator = CrossValidator(
        estimator=pipeline, estimatorParamMaps=grid, evaluator=BinaryClassificationEvaluator(), numFolds=2, seed=1
    )
    model = validator.fit(points)
    assert all(metric > ACCURACY for metric in model.avgMetrics)
    model.write().overwrite().save(str(tmp_path / "model"))
    again = CrossValidatorModel.load(str(tmp_path / "model"))
    assert isinstance(again.bestModel.stages[1], SeraphimModel)
    assert again.transform(points).collect() == model.transform(points).collect()


def test_a_grid_may_vary_settings(vectors: DataFrame) -> None:
    estimator = SeraphimLogisticRegression()
    grid = ParamGridBuilder().addGrid(estimator.settings, [{"epochs": 1}, {"epochs": 2}]).build()
    models = dict(estimator.fitMultiple(vectors, grid))
    assert sorted(models) == [0, 1]
    assert estimator.getSettings() == []
