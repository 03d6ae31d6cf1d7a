"""What all estimators share: parameters, training, models, and the conventions of scikit-learn."""

from __future__ import annotations

import inspect
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, ClassVar

import numpy as np

from seraphim import _input, _native, _settings
from seraphim._input import Attributes
from seraphim.errors import (
    DataError,
    InternalError,
    ModelError,
    NotFittedError,
    SeraphimWarning,
    SettingError,
    StorageError,
)

log = logging.getLogger("seraphim")

# Parameters that every estimator has besides those of its algorithm, with their defaults. They are keys of a job.
RUN_PARAMETERS = {"seed": 1, "tasks": "auto", "threads": None}
# The key of the last row of a table that a model makes, as the intercept.
LAST_KEY = np.uint64(2**64 - 1)


@dataclass
class _Extras:
    """What a training may have besides its records."""

    sample_weight: Any
    groups: Any
    eval_set: Any
    init_model: Any
    callback: Callable[[dict[str, Any]], Any] | None


class Estimator:
    """An algorithm with its parameters and, after ``fit``, a model."""

    algorithm: ClassVar[str]
    kind: ClassVar[str] = "estimator"
    # Settings that the class itself gives, such as the loss of a regressor.
    fixed: ClassVar[dict[str, str]] = {}
    defaults: ClassVar[dict[str, Any]] = {}
    takes_sparse: ClassVar[bool] = True

    _model: _native.TrainedModel

    def __init__(self, **parameters: Any) -> None:
        for name, default in self.defaults.items():
            setattr(self, name, parameters.pop(name, default))
        for name in parameters:
            raise TypeError(_settings.unknown(name, self.defaults, type(self).__name__))

    # Parameters, as scikit-learn asks for them.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self.defaults}

    def set_params(self, **parameters: Any) -> Any:
        """Sets parameters, and returns the estimator."""
        for name, value in parameters.items():
            if name not in self.defaults:
                raise SettingError(_settings.unknown(name, self.defaults, type(self).__name__))
            setattr(self, name, value)
        return self

    def _settings_and_options(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        given = {
            name: value
            for name, value in self.get_params().items()
            if not _is_same(value, self.defaults[name])
        }
        run = {name: given.pop(name) for name in RUN_PARAMETERS if name in given}
        return [*self.fixed.items(), *_settings.texts(given)], _settings.texts(run)

    # Training.

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        eval_set: Any = None,
        init_model: Any = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        cluster: str | None = None,
        model: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Any:
        """Trains on ``X`` and ``y``.

        Parameters
        ----------
        X : array, sparse matrix, table or paths
            Records: numpy arrays, scipy matrices, tables of pandas, polars or pyarrow, or files as ``--data`` takes them.
        y : array or str, optional
            A label for each record; for files and tables also the name of their label column.
        sample_weight : array, optional
            A weight of at least 0 for each record; 0 is as if the record were not there.
        groups : array, optional
            A group for each record, for ranking and metrics within groups.
        eval_set : (X, y), optional
            Records to validate on after each epoch.
        init_model : estimator or path, optional
            A model from which training continues.
        callback : callable, optional
            Gets a dict with the metrics of each epoch, and ends the training if it returns true.
        cluster : str, optional
            The address of a master (``host:port``), as ``--master`` takes it: the job is submitted there. ``X`` and ``model`` are then
            paths that the workers reach.
        model : path, optional
            The model directory that a cluster writes, in a shared folder or a store.
        **options
            Other keys of a job, as in ``seraphim train``: ``validate_from="2026-01-01"``, ``consistency="ssp:4"``, ...
        """
        if hasattr(X, "tocsr") and not self.takes_sparse:
            raise DataError(
                f"sparse input is not supported: {type(self).__name__} needs the field of each entry; give a table, where each "
                "column is a field, or a file of libffm"
            )
        if cluster is not None:
            for name, value in [
                ("sample_weight", sample_weight),
                ("groups", groups),
                ("init_model", init_model),
                ("callback", callback),
            ]:
                if value is not None:
                    raise SettingError(f"{name} is not for a cluster, which reads files; leave it out")
            return self._fit_on_cluster(cluster, X, y, eval_set, model, options)
        if model is not None:
            raise SettingError("model is where a cluster writes the model: give cluster too, or call save after fit")
        before = self.__dict__.copy()
        try:
            raised = self._train(X, y, _Extras(sample_weight, groups, eval_set, init_model, callback), options)
        except BaseException:
            # The model that was there, if there was one, keeps its classes.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if raised is not None:
            raise raised
        return self

    def _train(self, X: Any, y: Any, extras: _Extras, options: dict[str, Any]) -> BaseException | None:
        """Trains, and returns the exception that has ended the training early, if there was one."""
        weights, eval_set = extras.sample_weight, extras.eval_set
        if isinstance(eval_set, list) and len(eval_set) == 1:
            (eval_set,) = eval_set
        if isinstance(eval_set, (list, tuple)) and len(eval_set) == 3 and weights is None and not _input.is_files(X):
            # Either all records have a weight or none.
            weights = np.ones(_row_count(X), dtype=np.float32)
        data = self._training_input(X, y, weights, extras.groups)
        validation = None if eval_set is None else self._validation_input(eval_set, X, y, weights is not None)
        settings, run_options = self._settings_and_options()
        settings += self._chosen_settings(settings)
        given = [*run_options, *data.options, *_settings.texts(options)]
        with tempfile.TemporaryDirectory(prefix="seraphim-") as folder:
            start = _path_of_model(extras.init_model, folder)
            callback = _epoch_callback(extras.callback)
            trained, raised = _native.train(
                self.algorithm, settings, given, data.records, validation, start, callback
            )
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._set_model(trained)
        if data.columns is not None:
            self.n_features_in_ = data.columns
        if data.names is not None:
            self.feature_names_in_ = np.asarray(data.names, dtype=object)
        return raised

    def _fit_on_cluster(
        self, cluster: str, X: Any, y: Any, eval_set: Any, model: Any, options: dict[str, Any]
    ) -> Any:
        """Submits the job, waits for its end, and reads the model."""
        if not _input.is_files(X) or not (y is None or isinstance(y, str)) or model is None:
            raise SettingError(
                "a cluster reads files: X is a path or a list of paths that its workers reach, y the name of the label column, "
                "and model the path of the model"
            )
        settings, run_options = self._settings_and_options()
        pairs = [*run_options, *_settings.texts(options)]
        pairs += [("label", y)] if y is not None else []
        for key, files in [("data", X), ("validate", eval_set)]:
            paths = [files] if isinstance(files, (str, os.PathLike)) else files or []
            pairs += [(key, os.fspath(path)) for path in paths]
        pairs += [("set", f"{name}={value}") for name, value in settings]
        words = ["submit", self.algorithm, "--master", cluster, "--model", os.fspath(model), "--quiet"]
        for key, value in pairs:
            words += [f"--{key.replace('_', '-')}"] + ([] if value == "true" else [value])
        command = [sys.executable, "-m", "seraphim", *words]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if ended.returncode != 0:
            kind = {2: SettingError, 3: DataError, 4: ModelError, 5: StorageError}.get(ended.returncode, InternalError)
            raise kind(ended.stderr.strip().removeprefix("error: "))
        self._forget_labels()
        self.__dict__.pop("n_features_in_", None)
        self._set_model(_native.TrainedModel.load(os.fspath(model)))
        return self

    def _training_input(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> _input.Input:
        attributes = Attributes(weights=_weights(sample_weight), groups=_groups(groups))
        if isinstance(y, str):
            return self._with_label_column(X, y, attributes)
        if y is not None and _input.is_files(X):
            raise SettingError("y is an array and X are files: give the name of the label column as y")
        if y is None and not _input.is_files(X) and self._needs_labels():
            raise DataError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None. For a table it may be the "
                "name of a column."
            )
        if y is not None:
            self._set_labels(y, attributes)
        return _input.convert(X, attributes)

    def _with_label_column(self, X: Any, label: str, attributes: Attributes) -> _input.Input:
        """The label is a column of a table or of files."""
        if not _input.is_files(X) and not _input.is_table(X):
            raise DataError(f"y is the text {label!r}, and X has no columns with names: give y as an array")
        self._forget_labels()
        data = _input.convert(X, attributes)
        data.options.append(("label", label))
        if data.columns is not None and data.names is not None and label in data.names:
            data.names = [name for name in data.names if name != label]
            data.columns -= 1
        return data

    def _validation_input(self, eval_set: Any, X_train: Any, y_train: Any, has_weights: bool) -> _native.Records:
        """Records that are read as those of the training are: with the same columns besides the features."""
        if _input.is_files(eval_set):
            return _input.convert(eval_set, Attributes()).records
        if not isinstance(eval_set, (list, tuple)) or len(eval_set) not in (2, 3):
            raise SettingError("eval_set is a pair (X, y), a triple (X, y, sample_weight), or paths")
        X, y, *more = eval_set
        weights = _weights(more[0]) if more else None
        if weights is None and has_weights:
            weights = np.ones(_row_count(X), dtype=np.float32)
        attributes = Attributes(weights=weights)
        if not isinstance(y, str):
            self._set_known_labels(y, attributes)
            attributes.label_column = y_train if isinstance(y_train, str) else _label_column(y_train)
        form = None if _input.is_table(X_train) else "libsvm" if hasattr(X_train, "tocsr") else "dense"
        return _input.convert(X, attributes, form).records

    def _needs_labels(self) -> bool:
        return False

    def _set_labels(self, y: Any, attributes: Attributes) -> None:
        """Takes labels for training."""

    def _set_known_labels(self, y: Any, attributes: Attributes) -> None:
        """Takes labels for a model."""
        self._set_labels(y, attributes)

    def _forget_labels(self) -> None:
        """The labels are those of the data."""

    def _chosen_settings(self, given: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Settings that follow from the labels."""
        return []

    def _set_model(self, model: _native.TrainedModel) -> None:
        self._model = model
        self._manifest = json.loads(model.manifest())
        report = model.report()
        self.report_ = None if report is None else json.loads(report)
        if self.report_ is not None:
            for choice in self.report_["choices"]:
                log.info("%s: %s", type(self).__name__, choice)
            _warn(self.report_["notices"])
        self.n_iter_ = max(1, int(self._manifest["trained"]["epochs"]))

    # Models.

    def _fitted(self) -> _native.TrainedModel:
        model = self.__dict__.get("_model")
        if model is None:
            raise _not_fitted()(
                f"This {type(self).__name__} instance is not fitted yet: call 'fit', or load a model with seraphim.load"
            )
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the model directory, which every command and version of Seraphim reads."""
        self._fitted().save(os.fspath(path), overwrite)

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> dict[str, Any]:
        """The metrics of labelled records, as ``seraphim evaluate`` prints them."""
        model = self._fitted()
        attributes = Attributes(weights=_weights(sample_weight))
        if isinstance(y, str):
            data = _input.convert(X, attributes)
            data.options.append(("label", y))
        else:
            if y is not None:
                self._set_known_labels(y, attributes)
            data = self._convert(X, attributes)
        result = json.loads(model.evaluate(data.records, [*data.options, *_settings.texts(options)]))
        _warn(result["notices"])
        return result

    def tables(self) -> list[str]:
        """The names of the tables of the model."""
        return self._fitted().tables()

    def table(self, name: str | None = None) -> dict[str, Any]:
        """A table of the model by columns: numpy arrays, the names of its features among them."""
        columns, names, keys, values = self._fitted().table(name)
        named = {} if names is None else {columns[0]: np.asarray(names, dtype=object)}
        rest = columns[len(named) :]
        return {**named, rest[0]: keys, **{column: values[:, at] for at, column in enumerate(rest[1:])}}

    # What scikit-learn calls parts of a model.

    def _part(self, name: str, table: str) -> np.ndarray:
        """Rows of features as an array whose columns are the features of ``X``."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{name} is there after fit")
        if table not in self._model.tables():
            raise AttributeError(f"a model of {self.algorithm} has no {name}")
        _, _, keys, values = self._model.table(table)
        is_feature = keys < LAST_KEY
        count = getattr(self, "n_features_in_", None)
        if count is None or (keys[is_feature] >= count).any():
            raise AttributeError(
                f"{name} has a column for each column of X, and this model has features of texts, files or missing values: use "
                f"table({table!r}), which has their names"
            )
        part = np.zeros((values.shape[1], count))
        part[:, keys[is_feature].astype(np.int64)] = values[is_feature].T
        return part

    def _convert(self, X: Any, attributes: Attributes) -> _input.Input:
        """Records for the model."""
        data = _input.convert(X, attributes, self._manifest["schema"]["format"])
        expected = getattr(self, "n_features_in_", None)
        if data.names is None and data.columns is not None and expected not in (None, data.columns):
            raise DataError(
                f"X has {data.columns} features, but {type(self).__name__} is expecting {expected} features as input"
            )
        return data

    def _scores(self, X: Any, **options: str) -> tuple[list[str], np.ndarray]:
        model = self._fitted()
        data = self._convert(X, Attributes())
        needs_no_label = _input.is_files(X) or data.names is not None
        given = [("no_label", "true")] if needs_no_label else []
        columns, values, notices = model.predict(data.records, [*given, *data.options, *options.items()])
        _warn(notices)
        return columns, values

    def predict(self, X: Any) -> np.ndarray:
        """What the model predicts for each record."""
        _, values = self._scores(X)
        return values[:, 0] if values.shape[1] == 1 else values

    # Copies and representations.

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_model"}
        if self.__sklearn_is_fitted__():
            with tempfile.TemporaryDirectory(prefix="seraphim-") as folder:
                path = Path(folder, "model")
                self.save(path)
                state["_files"] = {file.name: file.read_bytes() for file in path.iterdir()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop("_files", None)
        self.__dict__.update(state)
        if files is not None:
            with tempfile.TemporaryDirectory(prefix="seraphim-") as folder:
                for name, content in files.items():
                    Path(folder, name).write_bytes(content)
                self._model = _native.TrainedModel.load_into_memory(folder)

    def __repr__(self) -> str:
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _is_same(value, self.defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def _repr_html_(self) -> str:
        rows = [("algorithm", self.algorithm), *self.get_params().items()]
        if self.__sklearn_is_fitted__():
            trained = self._manifest["trained"]
            rows += [("records", trained["records"]), ("epochs", trained["epochs"]), *trained["metrics"].items()]
        cells = "".join(f"<tr><td>{_escaped(name)}</td><td>{_escaped(value)}</td></tr>" for name, value in rows)
        return f"<details open><summary>{_escaped(type(self).__name__)}</summary><table>{cells}</table></details>"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=self.takes_sparse, allow_nan=True),
        )


def set_signature(estimator: type[Estimator]) -> None:
    """Gives the class an ``__init__`` whose signature names the parameters."""

    def __init__(self: Estimator, **parameters: Any) -> None:
        Estimator.__init__(self, **parameters)

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    own += [inspect.Parameter(name, keyword, default=value) for name, value in estimator.defaults.items()]
    __init__.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{estimator.__name__}.__init__"
    estimator.__init__ = __init__  # type: ignore[method-assign]


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def _warn(notices: list[str], kind: type[Warning] = SeraphimWarning) -> None:
    """Warns where the program calls this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("seraphim"):
        level, frame = level + 1, frame.f_back
    for notice in notices:
        warnings.warn(notice, kind, stacklevel=level)


def _escaped(value: Any) -> str:
    import html

    return html.escape(str(value))


def _weights(weights: Any) -> np.ndarray | None:
    if weights is None:
        return None
    weights = _input.numbers(weights, "sample_weight")
    if weights.ndim != 1:
        raise DataError("Sample weights must be 1D array or scalar")
    if weights.size and not weights.any():
        raise DataError("every record has a weight of zero: nothing would be learned")
    return np.ascontiguousarray(weights, dtype=np.float32)


def _groups(groups: Any) -> np.ndarray | None:
    if groups is None:
        return None
    _, numbers = np.unique(np.asarray(groups), return_inverse=True)
    return numbers.astype(np.uint64)


def _epoch_callback(callback: Callable[[dict[str, Any]], Any] | None) -> Callable[[str], Any] | None:
    return None if callback is None else lambda line: callback(json.loads(line))


def _path_of_model(model: Any, folder: str) -> str | None:
    if not isinstance(model, Estimator):
        return None if model is None else os.fspath(model)
    path = os.path.join(folder, "model")
    model.save(path)
    return path


def _not_fitted() -> type[Exception]:
    try:
        from sklearn.exceptions import NotFittedError as OfSklearn
    except ImportError:
        return NotFittedError
    return type("NotFittedError", (NotFittedError, OfSklearn), {})


class Parts:
    """Parts of models under the names of scikit-learn; an attribute that a model does not have is an AttributeError."""

    algorithm: ClassVar[str]
    _model: _native.TrainedModel

    @property
    def coef_(self) -> np.ndarray:
        """The coefficients: a row for each class, or one; of a regressor the row alone."""
        coefficients = self._part("coef_", "coefficients")  # type: ignore[attr-defined]
        return coefficients[0] if isinstance(self, Regressor) else coefficients

    @property
    def intercept_(self) -> Any:
        """The intercepts: one for each class, or one; of a regressor the number alone."""
        self._part("intercept_", "coefficients")  # type: ignore[attr-defined]
        _, _, keys, values = self._model.table("coefficients")
        intercepts = values[keys == LAST_KEY][0]
        return float(intercepts[0]) if isinstance(self, Regressor) else intercepts

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of the gain of all splits that each feature has."""
        gain = self._part("feature_importances_", "importances")  # type: ignore[attr-defined]
        columns = self._model.table("importances")[0]
        row = gain[columns[-len(gain) :].index("gain")]
        return row / row.sum() if row.sum() > 0.0 else row


class Classifier(Parts, Estimator):
    """An estimator of classes."""

    kind = "classifier"
    # Whether the algorithm knows two classes only.
    is_binary: ClassVar[bool] = False

    def _needs_labels(self) -> bool:
        return True

    def _set_labels(self, y: Any, attributes: Attributes) -> None:
        labels = _column(y, attributes)
        classes = _classes_of(labels)
        if len(classes) > 2 and self.is_binary:
            raise SettingError(
                f"Only binary classification is supported. The type of the target is multiclass: y has {len(classes)} "
                f"classes, and {type(self).__name__} learns two; use SoftmaxRegression or GradientBoostingClassifier"
            )
        self.classes_ = classes
        self._set_known_labels(labels, attributes)

    def _set_known_labels(self, y: Any, attributes: Attributes) -> None:
        labels = _column(y, attributes)
        if self.classes_.dtype.kind in "USO":
            names = [str(name) for name in np.unique(labels)]
            attributes.label_names = names
            attributes.labels = np.unique(labels, return_inverse=True)[1].astype(np.float64)
        else:
            attributes.labels = labels.astype(np.float64)

    def _forget_labels(self) -> None:
        self.__dict__.pop("classes_", None)

    def _chosen_settings(self, given: list[tuple[str, str]]) -> list[tuple[str, str]]:
        if "classes_" not in self.__dict__ or self.classes_.dtype.kind in "USO":
            return []
        numbers = [float(number) for number in self.classes_]
        known = dict(given)
        chosen = []
        if len(numbers) == 2 and "positive_label" in self.defaults and "positive_label" not in known:
            if numbers not in ([0.0, 1.0], [-1.0, 1.0]):
                chosen.append(("positive_label", f"{numbers[1]:g}"))
        # Other numbers than two could be amounts, but here they are classes.
        if len(numbers) > 2 and "objective" in self.defaults and "objective" not in known:
            chosen.append(("objective", "softmax"))
        return chosen

    def _set_model(self, model: _native.TrainedModel) -> None:
        if model.output()[0] == "value":
            raise SettingError(
                "the labels of the data are numbers, of which objective=auto has learned the amounts: give objective='softmax' if "
                f"they are classes, or use {type(self).__name__.replace('Classifier', 'Regressor')}"
            )
        super()._set_model(model)
        if "classes_" not in self.__dict__:
            self.classes_ = self._classes_of_model()

    def _classes_of_model(self) -> np.ndarray:
        names = self._manifest["schema"]["label_names"]
        kind, classes, _ = self._model.output()
        if kind == "classes":
            return np.asarray([names[int(number)] for number in classes] if names else classes)
        return np.asarray(names if len(names) == 2 else [0, 1])

    def _positive(self) -> int:
        """The position of the class that a single score is for."""
        positive = self._manifest["settings"].get("positive_label", "")
        labels = [_settings.text_of(label) for label in self.classes_.tolist()]
        if positive in labels:
            return labels.index(positive)
        numbers = [f"{label:g}" if isinstance(label, float) else str(label) for label in self.classes_.tolist()]
        return numbers.index(positive) if positive in numbers else len(labels) - 1

    def _by_class(self, values: np.ndarray) -> np.ndarray:
        """Columns in the order of ``classes_``."""
        names = self._manifest["schema"]["label_names"]
        numbers = self._model.output()[1]
        of_model = [names[int(number)] for number in numbers] if names else list(numbers)
        own = [str(label) if names else float(label) for label in self.classes_.tolist()]
        return values if of_model == own else values[:, [of_model.index(label) for label in own]]

    def predict(self, X: Any) -> np.ndarray:
        """The label that is most likely for each record."""
        kind = self._fitted().output()[0]
        _, values = self._scores(X)
        if kind == "classes":
            return self.classes_[np.argmax(self._by_class(values), axis=1)]
        threshold = 0.5 if kind == "probability" else 0.0
        positive = self._positive()
        other = 1 - positive if len(self.classes_) == 2 else positive
        return self.classes_[np.where(values[:, 0] > threshold, positive, other)]

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores before they become probabilities: one for two classes, else one for each class."""
        kind = self._fitted().output()[0]
        _, values = self._scores(X, raw_scores="true")
        if kind == "classes":
            values = self._by_class(values)
            return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values
        scores = values[:, 0]
        return scores if self._positive() == len(self.classes_) - 1 else -scores

    def _probabilities(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``."""
        kind = self._fitted().output()[0]
        _, values = self._scores(X)
        if kind == "classes":
            return self._by_class(values)
        share = values[:, 0]
        pair = np.stack([1.0 - share, share], axis=1)
        return pair if self._positive() == 1 else pair[:, ::-1]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of records whose label is predicted."""
        return float(np.average(self.predict(X) == _column(y), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=not self.is_binary)
        tags.target_tags.required = True
        return tags


class ProbabilisticClassifier(Classifier):
    """An estimator of probabilities of classes."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``."""
        return self._probabilities(X)


class Regressor(Parts, Estimator):
    """An estimator of numbers."""

    kind = "regressor"

    def _needs_labels(self) -> bool:
        return True

    def _set_labels(self, y: Any, attributes: Attributes) -> None:
        labels = _input.numbers(_column(y, attributes), "y")
        if not np.isfinite(labels).all():
            raise DataError("Input y contains NaN or infinity")
        attributes.labels = np.ascontiguousarray(labels, dtype=np.float64)

    def _chosen_settings(self, given: list[tuple[str, str]]) -> list[tuple[str, str]]:
        # Two labels could be classes, but here they are amounts.
        is_open = "objective" in self.defaults and "objective" not in dict(given)
        return [("objective", "squared")] if is_open else []

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination, R2."""
        y = _input.numbers(_column(y), "y").astype(np.float64)
        mean = np.average(y, weights=sample_weight)
        residual = np.average((y - self.predict(X)) ** 2, weights=sample_weight)
        total = np.average((y - mean) ** 2, weights=sample_weight)
        return float(1.0 - residual / total) if total > 0.0 else float(residual == 0.0)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags()
        tags.target_tags.required = True
        return tags


class Clusterer(Estimator):
    """An estimator of clusters."""

    kind = "clusterer"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> Any:
        """Trains on ``X``; ``y`` is ignored."""
        super().fit(X, None, sample_weight, **more)
        if not _input.is_files(X):
            self.labels_ = self.predict(X)
        return self

    fit.__doc__ = Estimator.fit.__doc__

    @property
    def cluster_centers_(self) -> np.ndarray:
        """The centre of each cluster, a row each."""
        return self._part("cluster_centers_", "centres")

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each record."""
        return self._scores(X)[1][:, 0].astype(np.int64)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> np.ndarray:
        """Trains, and returns the cluster of each record."""
        return self.fit(X, y, sample_weight, **more).labels_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of the squared distances to the nearest centre."""
        distances = self._scores(X)[1][:, 1]
        return -float(np.sum(distances**2 if sample_weight is None else distances**2 * np.asarray(sample_weight)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        return tags


class Transformer(Estimator):
    """An estimator whose predictions are new columns."""

    kind = "transformer"

    def transform(self, X: Any) -> np.ndarray:
        """The columns of each record, as the shares of topics."""
        return self._scores(X)[1]

    def fit_transform(self, X: Any, y: Any = None, **more: Any) -> np.ndarray:
        """Trains, and returns the columns of each record."""
        return self.fit(X, y, **more).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns."""
        return np.asarray(self._fitted().output()[2], dtype=object)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags


class Topics(Transformer):
    """An estimator of topics of documents, whose words are counted: texts in a table, or counts in an array."""

    @property
    def components_(self) -> np.ndarray:
        """How often each word (a column) has each topic (a row)."""
        return self._part("components_", self.tables()[0] if self.__sklearn_is_fitted__() else "")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks of scikit-learn give fractions and negative numbers.
        tags._skip_test = True
        return tags


class Ranker(Regressor):
    """An estimator of the order of records within their groups, which ``fit`` gets as ``groups``."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks of scikit-learn give no groups.
        tags._skip_test = True
        return tags


def _label_column(y: Any) -> str:
    """What the column of labels of a table is called: as they are, if they have a name."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else "label"


def _row_count(X: Any) -> int:
    return int(X.shape[0] if hasattr(X, "shape") else len(X))


def _column(y: Any, attributes: Attributes | None = None) -> np.ndarray:
    """Labels as an array of one dimension."""
    if attributes is not None and hasattr(y, "name"):
        attributes.label_column = _label_column(y)
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if values.ndim == 2 and values.shape[1] == 1:
        _warn_of_column()
        values = values.ravel()
    if values.ndim != 1:
        raise DataError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    if values.dtype.kind == "c":
        raise DataError("Complex data not supported: y has complex numbers")
    return values


def _warn_of_column() -> None:
    try:
        from sklearn.exceptions import DataConversionWarning as Kind
    except ImportError:
        Kind = SeraphimWarning
    _warn(["A column-vector y was passed when a 1d array was expected"], Kind)


def _classes_of(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise DataError("Input y contains NaN or infinity")
        if (labels != np.floor(labels)).any():
            raise DataError("Unknown label type: continuous. y has fractions, and a classifier needs classes; use a regressor")
    try:
        classes = np.unique(labels)
    except TypeError:
        raise DataError("y has values of several types: classes are all texts, or all numbers") from None
    if labels.dtype.kind == "O" and not all(isinstance(name, str) for name in classes):
        if all(isinstance(number, (int, float, np.number, np.bool_)) for number in classes):
            return np.asarray(classes.tolist())
        raise DataError("y has missing values, or values that are neither texts nor numbers")
    return classes
