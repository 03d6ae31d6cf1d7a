"""Parameters of estimators: from the table of algorithms, and as the texts that the native part reads."""

from __future__ import annotations

import difflib
import json
import keyword
from functools import cache
from typing import Any, Iterable, Mapping

from seraphim import _native


@cache
def algorithms() -> dict[str, dict[str, Any]]:
    """The algorithms by name: title and parameters."""
    return {row["name"]: row for row in json.loads(_native.algorithms())}


def name_in_python(name: str) -> str:
    """The name of a parameter, or, if Python has that word for itself, the name with an underscore: ``lambda_``."""
    return name + "_" if keyword.iskeyword(name) else name


def value_of(text: str) -> Any:
    """What a text of the table stands for in Python: a truth value, a number, or the text."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def text_of(value: Any) -> str:
    """A value as the text of a setting."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{text_of(key)}:{text_of(number)}" for key, number in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(part) for part in value)
    return str(value)


def texts(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings or options as pairs of texts. ``None`` leaves a choice to the program."""
    pairs = []
    for name, value in values.items():
        if value is None or value is False:
            if value is False:
                pairs.append((name, "false"))
            continue
        pairs.append((name.removesuffix("_"), text_of(value)))
    return pairs


def unknown(name: str, known: Iterable[str], what: str) -> str:
    """What is said of an unknown name."""
    known = list(known)
    nearest = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(sorted(known))}"
    return f"{what} has no parameter {name!r}{hint}"
