"""The parameter `settings`: parameters of the algorithm as `name=value`."""

from collections.abc import Iterable, Mapping
from typing import Any


def to_settings(value: Any) -> list[str]:
    """Returns settings as Java takes them, from a dict or from words `name=value`.

    Raises TypeError for anything else: Param turns it into an error that names the parameter.
    """
    if isinstance(value, Mapping):
        return [f"{name}={_text(item)}" for name, item in value.items()]
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"settings are a dict or a list of 'name=value', not {value!r}")
    words = list(value)
    for word in words:
        if not isinstance(word, str) or word.find("=") < 1:
            raise TypeError(f"the setting {word!r} is not of the form 'name=value'")
    return words


def _text(value: Any) -> str:
    """The program writes booleans in small letters."""
    return str(value).lower() if isinstance(value, bool) else str(value)
