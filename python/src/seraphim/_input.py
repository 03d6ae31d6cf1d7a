"""Arrays, tables and files of Python as records. Only forms are converted; what values mean is decided by the native part."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any, Sequence

import numpy as np

from seraphim._native import Records
from seraphim.errors import DataError, SettingError

# Whole numbers above this are no longer exact in double precision.
EXACT_INTEGER_LIMIT = 2**53
# Rows that are checked at once.
CHECKED_ROWS = 1 << 14


@dataclass
class Attributes:
    """What the records have besides their features."""

    labels: np.ndarray | None = None
    label_names: list[str] = field(default_factory=list)
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    # What the column of labels of a table is called.
    label_column: str = "label"


@dataclass
class Input:
    """Records with the shape that scikit-learn wants to know."""

    records: Records
    options: list[tuple[str, str]] = field(default_factory=list)
    rows: int | None = None
    columns: int | None = None
    names: list[str] | None = None


def is_files(data: Any) -> bool:
    """Whether the data are a path, or a list of paths."""
    if isinstance(data, (str, os.PathLike)):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(x, (str, os.PathLike)) for x in data)


def is_table(data: Any) -> bool:
    """Whether the data are columns with names."""
    return _is_pandas(data) or hasattr(data, "__arrow_c_stream__")


def convert(data: Any, attributes: Attributes, format_of_model: str | None = None) -> Input:
    """The records of any data that are accepted. A model of sparse rows gets sparse rows, and one of dense rows dense ones."""
    if is_files(data):
        if attributes.weights is not None or attributes.groups is not None:
            raise SettingError(
                "X are files, whose weights and groups are columns: name them with weight='...' and group='...', and give no "
                "sample_weight and no groups"
            )
        paths = [data] if isinstance(data, (str, os.PathLike)) else data
        return Input(Records.files([os.fspath(path) for path in paths]))
    if _is_pandas(data):
        return _pandas(data, attributes)
    if hasattr(data, "__arrow_c_stream__"):
        return _arrow(data, attributes)
    if hasattr(data, "tocsr"):
        return _dense(data.toarray(), attributes) if format_of_model == "dense" else _sparse(data, attributes)
    if format_of_model == "libsvm":
        return _sparse(_Rows(_matrix(data)), attributes)
    return _dense(data, attributes)


class _Rows:
    """Compressed sparse rows of a dense array, as scipy has them."""

    has_canonical_format = True

    def __init__(self, values: np.ndarray) -> None:
        rows, self.indices = np.nonzero(values)
        self.shape, self.dtype = values.shape, values.dtype
        self.data = values[rows, self.indices]
        self.indptr = np.searchsorted(rows, np.arange(values.shape[0] + 1))

    def tocsr(self) -> _Rows:
        return self


def _is_pandas(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _check_lengths(rows: int, attributes: Attributes) -> None:
    for name, values in [
        ("y", attributes.labels),
        ("sample_weight", attributes.weights),
        ("groups", attributes.groups),
    ]:
        if values is not None and len(values) != rows:
            raise DataError(
                f"Found input variables with inconsistent numbers of samples: X has {rows} and {name} has {len(values)}"
            )


def _check_shape(rows: int, columns: int) -> None:
    for count, what in [(rows, "sample(s)"), (columns, "feature(s)")]:
        if count == 0:
            raise DataError(
                f"Found array with 0 {what} (shape=({rows}, {columns})) while a minimum of 1 is required."
            )


def _matrix(data: Any) -> np.ndarray:
    values = numbers(data, "X")
    if values.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {values.ndim}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a single "
            "sample."
        )
    return values


def _dense(data: Any, attributes: Attributes) -> Input:
    values = _matrix(data)
    rows, columns = values.shape
    _check_shape(rows, columns)
    _check_lengths(rows, attributes)
    bad = _first_infinity(values)
    if bad is not None:
        row, column = bad
        raise DataError(f"X contains infinity in row {row}, column {column}; NaN is a missing value")
    records = Records.dense(np.ascontiguousarray(values), [], attributes)
    return Input(records, [], rows, columns)


def _first_infinity(values: np.ndarray) -> tuple[int, int] | None:
    # In blocks, so that no array of the size of the data is made.
    for start in range(0, len(values), CHECKED_ROWS):
        bad = np.argwhere(np.isinf(values[start : start + CHECKED_ROWS]))
        if bad.size:
            return start + int(bad[0, 0]), int(bad[0, 1])
    return None


def numbers(data: Any, name: str) -> np.ndarray:
    """An array of float32 or float64 with the same numbers; the array itself if it is one."""
    if hasattr(data, "toarray"):
        raise DataError(f"{name} is sparse, and must be a list of numbers: use {name}.toarray()")
    try:
        values = np.asarray(data)
    except ValueError as error:
        raise DataError(f"{name} is no array of numbers: {error}") from None
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {name} has complex numbers")
    if values.dtype.kind in "US":
        raise DataError(
            f"{name} has texts where numbers are expected ({values.dtype}): convert them with .astype(float), or give a "
            "table (pandas, polars, pyarrow) whose columns of texts are categories"
        )
    if values.dtype.kind == "O":
        for value in values.flat:
            if value is not None and not isinstance(value, (int, float, np.number, np.bool_)):
                raise _no_number(name, value)
        return values.astype(np.float64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        _check_exact(values, name)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} has values of the type {values.dtype}, and numbers are expected")
    is_short = values.dtype.itemsize <= 2
    return values.astype(np.float32 if is_short else np.float64)


def _no_number(name: str, value: Any) -> Exception:
    text = f"argument must be a string or a real number: {name} has {value!r} ({type(value).__name__})"
    kind = DataError if isinstance(value, str) else type("DataTypeError", (DataError, TypeError), {})
    return kind(text)


def _check_exact(values: np.ndarray, name: str) -> None:
    if values.size and (int(values.max()) > EXACT_INTEGER_LIMIT or int(values.min()) < -EXACT_INTEGER_LIMIT):
        raise DataError(
            f"{name} has whole numbers beyond 2^53, whose last digits would be lost: if they name something, give them as "
            "texts in a table (.astype(str)); if they are quantities, convert them with .astype(float)"
        )


def _sparse(data: Any, attributes: Attributes) -> Input:
    rows, columns = data.shape
    _check_shape(rows, columns)
    _check_lengths(rows, attributes)
    matrix = data.tocsr()
    if matrix.dtype.kind == "c":
        raise DataError("Complex data not supported: X has complex numbers")
    if not matrix.has_canonical_format:
        # Entries of one place are summed, as scipy does. What the caller has stays as it is.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = matrix.data.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        raise DataError("X contains NaN or infinity; a sparse matrix has finite numbers")
    records = Records.sparse(
        matrix.indptr.astype(np.uint64),
        matrix.indices.astype(np.uint64),
        np.ascontiguousarray(values),
        None,
        attributes,
    )
    return Input(records, [], rows, columns)


def of_ratings(data: Any) -> Input:
    """A matrix of users x items as a table: a user, an item and a rating in each row."""
    _check_shape(*data.shape)
    matrix = data.tocoo()
    columns = [
        ("user", "text", [str(user) for user in matrix.row.tolist()]),
        ("item", "text", [str(item) for item in matrix.col.tolist()]),
        ("rating", "float64", matrix.data.astype(np.float64)),
    ]
    return Input(Records.columns(columns), [("label", "rating")], matrix.nnz, 3, [name for name, _, _ in columns])


def _pandas(data: Any, attributes: Attributes) -> Input:
    rows, columns = data.shape
    _check_shape(rows, columns)
    _check_lengths(rows, attributes)
    names = [str(name) for name in data.columns]
    own = [_pandas_column(name, data.iloc[:, at]) for at, name in enumerate(names)]
    more, options = _columns_of(attributes, names)
    return Input(Records.columns([*own, *more]), options, rows, columns, names)


def _arrow(data: Any, attributes: Attributes) -> Input:
    names = [str(name) for name in _arrow_names(data)]
    rows = len(data) if hasattr(data, "__len__") else None
    if rows is not None:
        _check_shape(rows, len(names))
        _check_lengths(rows, attributes)
    more, options = _columns_of(attributes, names)
    return Input(Records.stream(data, more), options, rows, len(names), names)


def _arrow_names(data: Any) -> Sequence[Any]:
    for attribute in ("column_names", "columns"):
        names = getattr(data, attribute, None)
        if names is not None and all(isinstance(name, str) for name in names):
            return names
    schema = getattr(data, "schema", None)
    return list(getattr(schema, "names", []))


def _columns_of(attributes: Attributes, taken: list[str]) -> tuple[list[tuple[str, str, Any]], list[tuple[str, str]]]:
    """Labels, weights and groups as columns of a table, and the options that name them."""
    columns: list[tuple[str, str, Any]] = []
    options: list[tuple[str, str]] = []

    def add(option: str, name: str, kind: str, values: Any) -> None:
        while name in taken:
            name += "_"
        columns.append((name, kind, values))
        options.append((option, name))

    if attributes.labels is not None:
        if attributes.label_names:
            values = (attributes.labels.astype(np.int32), attributes.label_names)
            add("label", attributes.label_column, "category", values)
        else:
            add("label", attributes.label_column, "float64", attributes.labels)
    if attributes.weights is not None:
        add("weight", "weight", "float32", attributes.weights)
    if attributes.groups is not None:
        add("group", "group", "uint64", attributes.groups)
    return columns, options


def _pandas_column(name: str, column: Any) -> tuple[str, str, Any]:
    pandas = sys.modules["pandas"]
    dtype = column.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        names = [str(value) for value in dtype.categories]
        return name, "category", (column.cat.codes.to_numpy(np.int32), names)
    if pandas.api.types.is_bool_dtype(dtype) and not column.hasnans:
        return name, "bool", column.to_numpy(bool)
    if pandas.api.types.is_datetime64_any_dtype(dtype):
        if getattr(dtype, "tz", None) is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return name, "time", column.to_numpy("datetime64[us]").view(np.int64)
    if pandas.api.types.is_timedelta64_dtype(dtype):
        return name, "float64", column.dt.total_seconds().to_numpy(np.float64)
    if pandas.api.types.is_numeric_dtype(dtype):
        return _number_column(name, column, dtype)
    kind = pandas.api.types.infer_dtype(column, skipna=True)
    if kind in ("integer", "floating", "mixed-integer-float", "boolean", "decimal"):
        return name, "float64", pandas.to_numeric(column.astype(object)).to_numpy(np.float64, na_value=np.nan)
    if kind in ("datetime", "date"):
        return _pandas_column(name, pandas.to_datetime(column))
    return name, "text", column.astype(object).tolist()


def _number_column(name: str, column: Any, dtype: Any) -> tuple[str, str, Any]:
    if dtype.kind in "iu" and not column.hasnans:
        wide = "uint64" if dtype.kind == "u" else "int64"
        values = column.to_numpy(wide)
        _check_exact(values, f"column '{name}'")
        return name, wide, values
    single = dtype.kind == "f" and getattr(dtype, "itemsize", 8) <= 4
    wide = "float32" if single else "float64"
    return name, wide, np.ascontiguousarray(column.to_numpy(wide, na_value=np.nan))
