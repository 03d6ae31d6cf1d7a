"""The classes of estimators: one for each algorithm, made from the table of algorithms; and ``load``."""

from __future__ import annotations

import json
import os
from typing import Any

from seraphim import _native, _settings
from seraphim._estimators import (
    RUN_PARAMETERS,
    Classifier,
    Clusterer,
    Estimator,
    ProbabilisticClassifier,
    Ranker,
    Regressor,
    Topics,
    set_signature,
)
from seraphim._recommenders import Recommender

# Names of classes, their kinds, and the settings that they fix. An algorithm without a row has a class of its own name,
# which predicts what its models predict.
NAMES: dict[str, list[tuple[str, type[Estimator], dict[str, str]]]] = {
    "lr": [("LogisticRegression", ProbabilisticClassifier, {})],
    "svm": [("LinearSVC", Classifier, {})],
    "softmax": [("SoftmaxRegression", ProbabilisticClassifier, {})],
    "linear": [("LinearRegression", Regressor, {})],
    "huber": [("HuberRegressor", Regressor, {})],
    "fm": [
        ("FMClassifier", ProbabilisticClassifier, {}),
        ("FMRegressor", Regressor, {"loss": "squared"}),
    ],
    "ffm": [
        ("FFMClassifier", ProbabilisticClassifier, {}),
        ("FFMRegressor", Regressor, {"loss": "squared"}),
    ],
    "gbdt": [
        ("GradientBoostingClassifier", ProbabilisticClassifier, {}),
        ("GradientBoostingRegressor", Regressor, {}),
        ("GradientBoostingRanker", Ranker, {"objective": "lambdarank"}),
    ],
    "kmeans": [("KMeans", Clusterer, {})],
    "lda": [("LDA", Topics, {})],
    "als": [("ALS", Recommender, {})],
    "ials": [("ImplicitALS", Recommender, {})],
    "mf": [("MatrixFactorization", Recommender, {})],
    "bpr": [("BPR", Recommender, {})],
    "itemknn": [("ItemKNN", Recommender, {})],
    "ease": [("EASE", Recommender, {})],
}
# Algorithms of two classes.
BINARY = {"lr", "svm", "fm", "ffm"}
# Algorithms whose sparse rows need the field of each entry, which scipy does not have.
WITH_FIELDS = {"ffm"}
# Parameters that an algorithm has and must not be given.
HIDDEN = {"softmax": {"positive_label"}}


def _make() -> dict[str, type[Estimator]]:
    classes: dict[str, type[Estimator]] = {}
    for algorithm, row in _settings.algorithms().items():
        parameters = {
            _settings.name_in_python(p["name"]): _settings.value_of(p["default"]) for p in row["parameters"]
        }
        for name, base, fixed in NAMES.get(algorithm, [(algorithm.capitalize(), Estimator, {})]):
            own = {key: value for key, value in parameters.items() if key not in {*fixed, *HIDDEN.get(algorithm, ())}}
            body = {
                "algorithm": algorithm,
                "fixed": fixed,
                "defaults": {**own, **RUN_PARAMETERS},
                "is_binary": algorithm in BINARY,
                "takes_sparse": algorithm not in WITH_FIELDS,
                "__doc__": _document(row, {*fixed, *HIDDEN.get(algorithm, ())}),
                "__module__": "seraphim",
            }
            classes[name] = type(name, (base,), body)
            set_signature(classes[name])
    return classes


def _document(row: dict[str, Any], hidden: set[str]) -> str:
    lines = [f"{row['title']}.", "", "Parameters", "----------"]
    for parameter in row["parameters"]:
        if parameter["name"] not in hidden:
            name = _settings.name_in_python(parameter["name"])
            lines.append(f"{name} : {parameter['type']}, default {parameter['default'] or 'none'}")
            lines.append(f"    {parameter['meaning']}")
    lines += ["seed : int, default 1", "    Seed of everything random"]
    lines += ["tasks : int or 'auto', default auto", "    Number of tasks; another number gives another model"]
    lines += ["threads : int, default all cores", "    Maximum number of tasks that compute at once"]
    return "\n".join(lines)


CLASSES = _make()


def load(path: str | os.PathLike[str]) -> Estimator:
    """Reads a model directory, whoever wrote it, as a fitted estimator."""
    model = _native.TrainedModel.load(os.fspath(path))
    manifest = json.loads(model.manifest())
    algorithm, settings = manifest["algorithm"], manifest["settings"]
    kind = model.output()[0]
    classifies = kind in ("probability", "margin", "classes")
    rows = [one for one in CLASSES.values() if one.algorithm == algorithm] or [Estimator]
    fits = [one for one in rows if all(settings.get(key) == value for key, value in one.fixed.items())]
    fits = [one for one in fits if issubclass(one, Classifier) == classifies] or fits or rows
    # The class that fixes most is the most particular one.
    estimator = max(fits, key=lambda one: len(one.fixed))
    named = {_settings.name_in_python(key): _settings.value_of(text) for key, text in settings.items()}
    known = {key: value for key, value in named.items() if key in estimator.defaults}
    loaded = estimator(**{**known, "seed": manifest["trained"]["seed"], "tasks": manifest["trained"]["tasks"]})
    loaded._set_model(model)
    columns = manifest["schema"]["columns"]
    if columns:
        loaded.n_features_in_ = len(columns)
    return loaded
