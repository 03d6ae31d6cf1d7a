"""Defaults without a setting against those of Spark ML and scikit-learn, through each door: vectors of Spark, columns of
Spark (`inputCols`), CSV and libsvm.

    python spark_defaults.py SERAPHIM DATA [--only adult,a9a] [--algorithms lr,svm]

needs the package `seraphim_spark` and scikit-learn. It prints a Markdown table and ends with 1 if a metric is more than
.003 worse than the better peer. Metrics: AUC for two classes, accuracy for more, and r2 for values.
"""

import argparse
import csv
import gzip
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np
from pyspark.ml import Pipeline, classification, regression
from pyspark.ml.feature import OneHotEncoder, StringIndexer, VectorAssembler
from pyspark.sql import DataFrame, SparkSession
from sklearn import linear_model, metrics, pipeline, preprocessing, svm

import seraphim_spark

BAR = 0.003


@dataclass
class DataSet:
    """One data set: its files, and for tables its columns."""

    name: str
    algorithms: list[str]
    size: int = 0
    label: str = ""
    numbers: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def ending(self) -> str:
        return "libsvm" if self.size else "csv"

    def kind(self, algorithm: str) -> str:
        if self.name == "california":
            return "r2"
        return "accuracy" if algorithm == "softmax" else "auc"


SETS = [
    DataSet(
        "adult_raw",
        ["lr", "svm", "softmax", "fm"],
        label="income",
        numbers="age fnlwgt education-num capital-gain capital-loss hours-per-week".split(),
        names="workclass education marital-status occupation relationship race sex native-country".split(),
    ),
    DataSet("a9a", ["lr", "svm", "softmax", "fm"], size=123),
    DataSet(
        "california",
        ["linear"],
        label="target",
        numbers="MedInc HouseAge AveRooms AveBedrms Population AveOccup Latitude Longitude".split(),
    ),
    DataSet("frappe", ["lr", "svm", "softmax", "fm"], size=5383),
    DataSet(
        "criteo_tiny",
        ["lr", "svm", "softmax", "fm"],
        label="Label",
        numbers=[f"I{i}" for i in range(1, 14)],
        names=[f"C{i}" for i in range(1, 27)],
        skipped=["Id"],
    ),
    DataSet("news20", ["softmax"], size=101631),
]


def metric(kind: str, truth: np.ndarray, score: np.ndarray) -> float:
    if kind == "auc":
        return float(metrics.roc_auc_score(truth, score))
    return float(metrics.accuracy_score(truth, score) if kind == "accuracy" else metrics.r2_score(truth, score))


class Files:
    """The files of a data set, unpacked where Spark reads them.

    Spark counts the features of libsvm from 1, so those that are counted from 0 are shifted. The labels of the test file of
    criteo_tiny are placeholders: 1,600 records of the other are used for training, and the others for the test.
    """

    def __init__(self, data: Path, work: Path, one: DataSet) -> None:
        self.paths = {part: work / f"{one.name}.{part}.{one.ending}" for part in ("train", "test")}
        lines = {part: self.read(data / one.name / f"{part}.{one.ending}.gz") for part in self.paths}
        if one.name == "criteo_tiny":
            head, *rows = lines["train"]
            lines = {"train": [head, *rows[:1600]], "test": [head, *rows[1600:]]}
        if one.size and any(" 0:" in line for line in lines["train"]):
            lines = {part: [self.from_one(line) for line in own] for part, own in lines.items()}
        for part, path in self.paths.items():
            path.write_text("".join(line + "\n" for line in lines[part]))

    @staticmethod
    def read(path: Path) -> list[str]:
        with gzip.open(path, "rt") as source:
            return source.read().splitlines()

    @staticmethod
    def from_one(line: str) -> str:
        label, *entries = line.split()
        pairs = (entry.split(":") for entry in entries)
        return " ".join([label, *(f"{int(index) + 1}:{value}" for index, value in pairs)])


def frames(spark: SparkSession, files: Files, one: DataSet) -> dict[str, DataFrame]:
    """Returns the parts with columns `label` and `features`, and those of the table."""
    if one.size:
        read = spark.read.format("libsvm").option("numFeatures", one.size)
        parts = {part: read.load(str(path)).coalesce(2) for part, path in files.paths.items()}
        positive = "cast(label > 0 as double)" if one.name in ("a9a", "frappe") else "label"
        return {part: frame.selectExpr(f"{positive} as label", "features").cache() for part, frame in parts.items()}
    parts = {
        part: spark.read.csv(str(path), header=True, inferSchema=True).coalesce(2) for part, path in files.paths.items()
    }
    # Spark ML takes no missing values in a vector.
    filled = {part: frame.na.fill(0, one.numbers).na.fill("none", one.names) for part, frame in parts.items()}
    indexes = [f"{name}_index" for name in one.names]
    hots = [f"{name}_hot" for name in one.names]
    stages: list[Any] = []
    if one.name == "adult_raw":
        stages.append(StringIndexer(inputCol=one.label, outputCol="label", stringOrderType="alphabetAsc"))
    if one.names:
        stages.append(StringIndexer(inputCols=one.names, outputCols=indexes, handleInvalid="keep"))
        stages.append(OneHotEncoder(inputCols=indexes, outputCols=hots))
    stages.append(VectorAssembler(inputCols=hots + one.numbers, outputCol="features"))
    model = Pipeline(stages=stages).fit(filled["train"])
    scored = {part: model.transform(frame) for part, frame in filled.items()}
    if one.name != "adult_raw":
        scored = {part: frame.withColumn("label", frame[one.label].cast("double")) for part, frame in scored.items()}
    return {part: frame.cache() for part, frame in scored.items()}


def of_spark(estimator: Any, parts: dict[str, DataFrame], kind: str) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scored = estimator.fit(parts["train"]).transform(parts["test"])
    if kind == "auc":
        rows = [(row[0], row[1][1]) for row in scored.select("label", "rawPrediction").collect()]
    else:
        rows = [(row[0], row[1]) for row in scored.select("label", "prediction").collect()]
    truth, score = np.array(rows).T
    return metric(kind, truth, score)


def peer_of_spark(algorithm: str) -> Any:
    return {
        "lr": classification.LogisticRegression,
        "softmax": classification.LogisticRegression,
        "svm": classification.LinearSVC,
        "linear": regression.LinearRegression,
        "fm": classification.FMClassifier,
    }[algorithm]()


def peer_of_sklearn(algorithm: str, one: DataSet) -> Optional[Any]:
    """Its pipeline for data with one-hot columns: numbers are brought to [-1, 1]; sparse data stay as they are."""
    made = {
        "lr": linear_model.LogisticRegression(),
        "softmax": linear_model.LogisticRegression(),
        "svm": svm.LinearSVC(),
        "linear": linear_model.LinearRegression(),
    }.get(algorithm)
    if made is None or one.size:
        return made
    return pipeline.make_pipeline(preprocessing.MaxAbsScaler(), made)


def of_sklearn(algorithm: str, one: DataSet, parts: dict[str, DataFrame], kind: str) -> Optional[float]:
    from scipy.sparse import csr_matrix

    made = peer_of_sklearn(algorithm, one)
    if made is None:
        return None

    def arrays(frame: DataFrame) -> tuple[Any, np.ndarray]:
        rows = frame.select("features", "label").collect()
        entries = [
            (row[0].indices, row[0].values) if hasattr(row[0], "indices") else (np.arange(len(row[0])), row[0].values)
            for row in rows
        ]
        starts = np.cumsum([0] + [len(columns) for columns, _ in entries])
        shape = (len(rows), rows[0][0].size)
        columns, values = (np.concatenate([entry[i] for entry in entries]) for i in (0, 1))
        return csr_matrix((values, columns, starts), shape=shape), np.array([row[1] for row in rows])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(*arrays(parts["train"]))
    features, truth = arrays(parts["test"])
    score = made.decision_function(features) if kind == "auc" else made.predict(features)
    return metric(kind, truth, score)


def of_program(program: str, algorithm: str, one: DataSet, files: Files, kind: str, work: Path) -> float:
    """Trains and scores the files by the command line."""
    model, scores = work / f"{one.name}.{algorithm}", work / "scores.csv"
    flags = ["--label", one.label] if one.label else []
    flags += ["--skip-columns", ",".join(one.skipped)] if one.skipped else []
    train = ["train", algorithm, "--data", str(files.paths["train"]), "--model", str(model), "--quiet", *flags]
    predict = ["predict", "--model", str(model), "--data", str(files.paths["test"]), "--output", str(scores)]
    for words in (train, [*predict, "--overwrite", "--quiet"]):
        subprocess.run([program, *words], check=True, capture_output=True, text=True)
    rows = list(read_scores(scores))
    if kind == "auc":
        positive = {label for label, _ in rows} - {"-1", "0", "<=50K"}
        return metric(kind, np.array([label in positive for label, _ in rows]), np.array([float(s) for _, s in rows]))
    if kind == "accuracy":
        return float(np.mean([label == score for label, score in rows]))
    return metric(kind, np.array([float(label) for label, _ in rows]), np.array([float(s) for _, s in rows]))


def read_scores(path: Path) -> Iterator[tuple[str, str]]:
    """The label of each record, and its score or predicted class."""
    with path.open(newline="") as file:
        reader = csv.reader(file)
        next(reader)
        for row in reader:
            yield row[0], row[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--algorithms", default="")
    given = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.seraphim.binary", given.program)
    spark = seraphim_spark.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    worse = 0
    print("| data | algorithm | metric | Spark ML | scikit-learn | vectors | inputCols | file | worse by |", flush=True)
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as place:
        for one in SETS:
            if given.only and one.name not in given.only.split(","):
                continue
            files = Files(given.data, Path(place), one)
            parts = frames(spark, files, one)
            for algorithm in one.algorithms:
                if given.algorithms and algorithm not in given.algorithms.split(","):
                    continue
                kind = one.kind(algorithm)
                peers = [of_spark(peer_of_spark(algorithm), parts, kind), of_sklearn(algorithm, one, parts, kind)]
                estimator = seraphim_spark.SeraphimEstimator
                ours = [of_spark(estimator(algorithm=algorithm), parts, kind)]
                columns = one.names + one.numbers
                ours.append(
                    of_spark(estimator(algorithm=algorithm, inputCols=columns), parts, kind) if columns else None
                )
                ours.append(of_program(given.program, algorithm, one, files, kind, Path(place)))
                gap = max(peer for peer in peers if peer is not None) - min(own for own in ours if own is not None)
                worse += gap > BAR
                cells = ["-" if value is None else f"{value:.4f}" for value in peers + ours]
                mark = f"**{gap:.4f}**" if gap > BAR else f"{gap:.4f}"
                print("| " + " | ".join([one.name, algorithm, kind, *cells, mark]) + " |", flush=True)
            for frame in parts.values():
                frame.unpersist()
    spark.stop()
    return min(worse, 1)


if __name__ == "__main__":
    sys.exit(main())
