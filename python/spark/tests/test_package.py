"""What holds without the classes in the JVM."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import seraphim_spark
from seraphim_spark import _jars
from seraphim_spark._settings import to_settings
from seraphim_spark._version import check_version

CLASSES = [
    "SeraphimEstimator",
    "SeraphimLinearRegression",
    "SeraphimLogisticRegression",
    "SeraphimModel",
    "SeraphimSoftmaxRegression",
]

WITHOUT_JARS = """
from pyspark.sql import SparkSession
import seraphim_spark
try:
    seraphim_spark.SeraphimEstimator()
except RuntimeError as fault:
    print("without a session:", fault)
SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(
    "spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
for call in (seraphim_spark.SeraphimEstimator, lambda: seraphim_spark.SeraphimModel.load("nowhere")):
    try:
        call()
    except RuntimeError as fault:
        print("without jars:", fault)
"""


@pytest.fixture
def two_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    paths = [tmp_path / "seraphim-client.jar", tmp_path / "seraphim-spark.jar"]
    for path in paths:
        path.touch()
    monkeypatch.setattr(_jars, "_FOLDER", tmp_path)
    return [str(path) for path in paths]


def test_jars_are_the_files_of_the_package(two_jars: list[str]) -> None:
    assert seraphim_spark.jars() == two_jars


def test_a_package_without_jars_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jars, "_FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match="build_wheel.sh"):
        seraphim_spark.jars()


def test_configure_keeps_the_jars_that_the_builder_has(two_jars: list[str]) -> None:
    builder = SparkSession.Builder().config("spark.jars", "other.jar")
    assert seraphim_spark.configure(builder) is builder
    assert builder._options["spark.jars"] == ",".join(["other.jar", *two_jars])


def test_configuring_twice_adds_the_jars_once(two_jars: list[str]) -> None:
    builder = seraphim_spark.configure(seraphim_spark.configure(SparkSession.Builder()))
    assert builder._options["spark.jars"] == ",".join(two_jars)


def test_settings_may_be_a_dict() -> None:
    given = {"epochs": 3, "standardize": False, "optimizer": "adagrad", "l2": 0.5}
    assert to_settings(given) == ["epochs=3", "standardize=false", "optimizer=adagrad", "l2=0.5"]


def test_settings_may_be_words() -> None:
    assert to_settings(["epochs=3", "columns=a=b"]) == ["epochs=3", "columns=a=b"]


@pytest.mark.parametrize("value", ["epochs=3", 3, ["epochs"], ["=3"], [3]])
def test_other_settings_are_an_error(value: object) -> None:
    with pytest.raises(TypeError, match="setting"):
        to_settings(value)


@pytest.mark.parametrize("name", CLASSES)
def test_the_name_of_a_java_class_leads_to_the_python_class(name: str) -> None:
    assert getattr(importlib.import_module("org.seraphim.spark.ml"), name) is getattr(seraphim_spark, name)


def test_an_old_pyspark_is_an_error() -> None:
    check_version("4.0.0")
    with pytest.raises(ImportError, match="PySpark 3.5.7 is not supported: .* PySpark 4.0 or later"):
        check_version("3.5.7")


def test_a_session_without_the_jars_is_an_error_that_says_what_to_do() -> None:
    # A process of its own, because a JVM keeps its jars.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", WITHOUT_JARS], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    first, *others = run.stdout.splitlines()
    assert first.startswith("without a session: there is no Spark session: build it with seraphim_spark.configure(")
    assert len(others) == 2
    for line in others:
        assert "the jars of Seraphim are not in this Spark session" in line
        assert "seraphim_spark.configure(...)" in line
