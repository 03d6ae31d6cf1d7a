"""What a training tells: the reason why it failed, and its notices."""

from py4j.protocol import Py4JJavaError

_FAILURE = "org.seraphim.spark.ml.ProgramFailure"


class ProgramFailure(RuntimeError):
    """A training that has failed, with the reason as the program tells it."""


class SeraphimWarning(UserWarning):
    """A notice of a training, such as that the model has learned nothing."""


def failure(algorithm: str, fault: Py4JJavaError) -> Exception:
    """Returns the exception for Python: the reason without the stack of Java, or what Java has thrown."""
    if fault.java_exception.getClass().getName() != _FAILURE:
        return fault
    return ProgramFailure(f"the training of {algorithm} has failed:\n{fault.java_exception.getMessage()}")
