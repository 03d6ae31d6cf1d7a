"""A Spark session with the jars, and a small frame."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import pytest
from pyspark.sql import DataFrame, SparkSession

import seraphim_spark

RECORDS = 400


def _binary() -> Optional[str]:
    return os.environ.get("SERAPHIM_BIN") or shutil.which("seraphim")


def _jars() -> list[str]:
    try:
        return seraphim_spark.jars()
    except FileNotFoundError as fault:
        pytest.skip(str(fault))


def _program(jars: list[str]) -> dict[str, str]:
    """The settings that name the program, which the jars may have."""
    if any("seraphim-program" in jar for jar in jars):
        return {}
    binary = _binary()
    if binary is None or not Path(binary).is_file():
        pytest.skip("the program seraphim is missing; SERAPHIM_BIN names it")
    return {"spark.seraphim.binary": binary}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = _program(_jars())
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config(map=settings)
    )
    session = seraphim_spark.configure(builder).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def points(spark: SparkSession) -> DataFrame:
    """Points in a plane with the class of their side."""
    source = random.Random(1)
    pairs = [(source.gauss(0, 1), source.gauss(0, 1)) for _ in range(RECORDS)]
    rows = [(float(a + b > 0), a, b, a - 2 * b, n % 4 == 0) for n, (a, b) in enumerate(pairs)]
    return spark.createDataFrame(rows, ["label", "a", "b", "height", "validates"]).repartition(2).cache()


@pytest.fixture(scope="session")
def vectors(points: DataFrame) -> DataFrame:
    """The same points with a column of vectors."""
    from pyspark.ml.feature import VectorAssembler

    return VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(points)
