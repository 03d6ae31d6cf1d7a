"""Exceptions and warnings: one type for each kind of fault. Their texts are those of the command line."""

from __future__ import annotations


class SeraphimError(Exception):
    """Any error of Seraphim."""


class SettingError(SeraphimError, ValueError):
    """A parameter or an option is wrong: its name, its value, or its meaning for these data."""


class DataError(SeraphimError, ValueError):
    """The data are wrong: a bad value, no records, one class only."""


class ModelError(SeraphimError, ValueError):
    """A model directory is damaged, of another version, or does not fit the request."""


class StorageError(SeraphimError, OSError):
    """Reading or writing failed, or a process or connection was lost."""


class InterruptedRunError(SeraphimError):
    """A run was stopped before it had a result."""


class InternalError(SeraphimError, RuntimeError):
    """A fault of the program itself."""


class NotFittedError(SeraphimError, ValueError, AttributeError):
    """The estimator has no model yet."""


class SeraphimWarning(UserWarning):
    """Something that may be wrong with the data or the settings; the run goes on."""
