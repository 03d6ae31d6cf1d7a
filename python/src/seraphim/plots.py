"""Plots of trainings and models, with matplotlib (``pip install seraphim[plots]``). Each takes the axes to draw on, and returns them.

Examples
--------
>>> import numpy as np
>>> from seraphim import LogisticRegression, plots
>>> X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) % 4 > 1
>>> estimator = LogisticRegression(optimizer="ftrl", epochs=3).fit(X, y, eval_set=(X, y))
>>> axes = plots.learning_curves(estimator)
>>> axes.get_ylabel()
'loss'
"""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np
from numpy.typing import ArrayLike

from seraphim._estimators import Classifier, Estimator, Parts
from seraphim.errors import SettingError


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        raise SettingError("plots need matplotlib: pip install seraphim[plots]") from None
    return pyplot.subplots()[1]


def learning_curves(runs: Estimator | Mapping[str, Estimator], metric: str = "loss", *, axes: Any = None) -> Any:
    """A metric by epochs, of one estimator or of several by their names: of the training data, and dashed of validation data."""
    axes = _axes(axes)
    named = {"": runs} if isinstance(runs, Estimator) else runs
    for name, estimator in named.items():
        report = estimator.report_
        if report is None:
            raise SettingError("a model that was loaded has no report of its training: fit it here")
        for part, style in [("training", "-"), ("validation", "--")]:
            points = [(line["epoch"] + 1, line[part].get(metric)) for line in report["epochs"] if line[part]]
            known = [(epoch, value) for epoch, value in points if value is not None]
            if known:
                axes.plot(*zip(*known), style, label=f"{name} {part}".strip())
    if not axes.lines:
        raise SettingError(f"no epoch has the metric {metric!r}")
    axes.set_xlabel("epoch")
    axes.set_ylabel(metric)
    axes.legend()
    return axes


def roc(estimator: Classifier, X: Any, y: ArrayLike, *, axes: Any = None) -> Any:
    """The share of the positive records that are found, by the share of the others that are taken for positive."""
    axes = _axes(axes)
    scores = estimator.decision_function(X)
    positive = np.asarray(y) == estimator.classes_[-1]
    order = np.argsort(-scores, kind="stable")
    # Records of equal scores are one point.
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    true = np.cumsum(positive[order])[ends] / max(1, positive.sum())
    false = np.cumsum(~positive[order])[ends] / max(1, (~positive).sum())
    true, false = np.insert(true, 0, 0.0), np.insert(false, 0, 0.0)
    area = float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))
    axes.plot(false, true, label=f"area {area:.4f}")
    axes.plot([0, 1], [0, 1], ":", color="gray")
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    axes.legend()
    return axes


def calibration(estimator: Estimator, X: Any, y: ArrayLike, *, axes: Any = None) -> Any:
    """Observed shares by predicted probabilities, in the bins of ``evaluate``."""
    axes = _axes(axes)
    table = [row for row in estimator.evaluate(X, y)["calibration_table"] if row["records"] > 0]
    if not table:
        raise SettingError(f"{type(estimator).__name__} predicts no probabilities of two classes")
    axes.plot([0, 1], [0, 1], ":", color="gray")
    axes.plot([row["mean_predicted"] for row in table], [row["observed_share"] for row in table], "o-")
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("observed share")
    return axes


def importances(estimator: Parts, count: int = 20, *, axes: Any = None) -> Any:
    """The features with the largest gain of a model of trees, by their names."""
    axes = _axes(axes)
    table = estimator.table("importances")  # type: ignore[attr-defined]
    best = np.argsort(-table["gain"], kind="stable")[:count][::-1]
    axes.barh(table["feature"][best].astype(str), table["gain"][best])
    axes.set_xlabel("gain")
    return axes
