import numpy as np
import pytest
from seraphim import GradientBoostingClassifier, LogisticRegression, SettingError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plots = pytest.importorskip("seraphim.plots")


def test_curves_have_the_numbers_of_the_reports(rows):
    X, y = rows
    runs = {
        str(rate): LogisticRegression(optimizer="ftrl", learning_rate=rate, epochs=5).fit(X, y, eval_set=(X, y))
        for rate in (0.1, 1.0)
    }
    axes = plots.learning_curves(runs, "auc")
    assert [line.get_label() for line in axes.lines] == ["0.1 training", "0.1 validation", "1.0 training", "1.0 validation"]
    expected = [epoch["validation"]["auc"] for epoch in runs["1.0"].report_["epochs"]]
    assert axes.lines[3].get_ydata().tolist() == expected
    with pytest.raises(SettingError, match="no epoch has the metric 'depth'"):
        plots.learning_curves(runs, "depth")


def test_the_area_is_the_auc(rows):
    X, y = rows
    estimator = GradientBoostingClassifier(iterations=3).fit(X, y)
    auc = estimator.evaluate(X, y)["metrics"]["auc"]
    assert plots.roc(estimator, X, y).lines[0].get_label() == f"area {auc:.4f}"
    table = plots.calibration(estimator, X, y).lines[1].get_xydata()
    assert len(table) > 1 and np.all(np.diff(table[:, 0]) > 0)
    assert len(plots.importances(estimator, 2).patches) == 2
