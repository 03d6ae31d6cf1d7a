"""The Java classes of Seraphim in the running Spark session."""

from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark import SparkContext
from pyspark.ml.util import JavaMLReadable, JavaMLReader
from pyspark.ml.wrapper import JavaWrapper
from pyspark.sql import is_remote

_PACKAGE = "org.seraphim.spark.ml"


def java_name(python_name: str) -> str:
    """Returns the full name of the Java class that a Python class wraps."""
    return f"{_PACKAGE}.{python_name}"


def java_class(name: str) -> Any:
    """Returns a Java class by its full name.

    Raises RuntimeError if there is no Spark session in this process, or if it has no such class.
    """
    if is_remote():
        raise RuntimeError("seraphim_spark does not work with Spark Connect: use a session with a driver of its own")
    context = SparkContext._active_spark_context
    if context is None:
        raise RuntimeError(
            "there is no Spark session: build it with seraphim_spark.configure(SparkSession.builder).getOrCreate()"
        )
    found: Any = context._jvm
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, JavaPackage):
        raise RuntimeError(
            "the jars of Seraphim are not in this Spark session: build it with seraphim_spark.configure(...), "
            "before any other session of this Python process"
        )
    return found


def new_java_object(name: str, *arguments: Any) -> Any:
    """Returns a new object of a Java class."""
    java_class(name)
    return JavaWrapper._new_java_obj(name, *arguments)


class SeraphimReader(JavaMLReader):
    """Reads what the Java class has written."""

    @classmethod
    def _java_loader_class(cls, clazz: type) -> str:
        return java_name(clazz.__name__)

    @classmethod
    def _load_java_obj(cls, clazz: type) -> Any:
        return java_class(cls._java_loader_class(clazz))


class SeraphimReadable(JavaMLReadable):
    """Gives a class `read` and `load`."""

    @classmethod
    def read(cls) -> SeraphimReader:
        """Returns a reader of this class."""
        return SeraphimReader(cls)
