"""The jars inside this package, and how a Spark session gets them."""

from pathlib import Path

from pyspark.sql import SparkSession

_FOLDER = Path(__file__).parent / "jars"


def jars() -> list[str]:
    """Returns the paths of the jars of Seraphim.

    Raises FileNotFoundError if the package was installed from its source without them.
    """
    paths = sorted(str(path) for path in _FOLDER.glob("*.jar"))
    if not paths:
        raise FileNotFoundError(f"there are no jars in {_FOLDER}: build the package with build_wheel.sh")
    return paths


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Adds the jars of Seraphim to `spark.jars` of a builder, and returns the builder.

    It works for the first session of a Python process, because Spark's JVM reads the jars when it starts. With
    `spark-submit`, give it the jars as `--jars` instead.
    """
    given = str(builder._options.get("spark.jars", ""))
    names = [name for name in given.split(",") if name]
    names += [jar for jar in jars() if jar not in names]
    return builder.config("spark.jars", ",".join(names))
