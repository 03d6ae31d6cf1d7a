"""The versions of PySpark that the jars in this package can run in."""

# The jars are built for Scala 2.13, which PySpark has since this version.
OLDEST_MAJOR = 4


def check_pyspark() -> None:
    """Raises ImportError if PySpark is missing or too old."""
    try:
        import pyspark
    except ImportError:
        raise ImportError("seraphim_spark needs PySpark: pip install 'seraphim-spark[pyspark]'") from None
    check_version(pyspark.__version__)


def check_version(version: str) -> None:
    """Raises ImportError if this version of PySpark is too old."""
    if int(version.split(".")[0]) < OLDEST_MAJOR:
        raise ImportError(
            f"PySpark {version} is not supported: seraphim_spark needs PySpark {OLDEST_MAJOR}.0 or later, "
            "because its jars are for Scala 2.13"
        )
