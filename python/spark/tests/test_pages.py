"""What the pages show runs as it is written there."""

import re
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

REPOSITORY = Path(__file__).parents[3]


def _code(page: str) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / page).read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1, f"{page} has {len(blocks)} blocks of Python"
    return blocks[0]


def test_the_code_of_the_package_runs(spark: SparkSession, tmp_path: Path) -> None:
    # `getOrCreate` takes the session of the tests, which has the jars. Java resolves a relative path in the folder where
    # it was started, not in that of the test.
    code, place = _code("python/spark/README.md"), str(tmp_path / "model")
    assert code.count('"model"') == 2, "save and load"
    exec(code.replace('"model"', repr(place)), {})
    assert (tmp_path / "model" / "model.json").is_file()


def test_the_code_of_the_page_about_spark_runs(vectors: DataFrame, tmp_path: Path) -> None:
    names = {"SparkSession": SparkSession, "training": vectors, "test": vectors, "path": str(tmp_path / "model")}
    exec(_code("docs/spark.md"), names)
