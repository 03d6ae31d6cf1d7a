"""Every estimator passes the checks of scikit-learn, besides those of this list."""

import warnings

import pytest
import seraphim

checks = pytest.importorskip("sklearn.utils.estimator_checks")

BY_BATCHES = "training is by batches of records, so a record of weight 2 and two records are in other batches"
BY_POSITION = "the first centres are drawn by the positions of records, as in scikit-learn"
EXPECTED = {
    "FMClassifier": {
        "check_sample_weight_equivalence_on_dense_data": BY_BATCHES,
        "check_sample_weight_equivalence_on_sparse_data": BY_BATCHES,
    },
    "FMRegressor": {
        "check_sample_weight_equivalence_on_dense_data": BY_BATCHES,
        "check_sample_weight_equivalence_on_sparse_data": BY_BATCHES,
    },
    "FFMClassifier": {"check_sample_weight_equivalence_on_dense_data": BY_BATCHES},
    "FFMRegressor": {"check_sample_weight_equivalence_on_dense_data": BY_BATCHES},
    "KMeans": {
        "check_sample_weight_equivalence_on_dense_data": BY_POSITION,
        "check_sample_weight_equivalence_on_sparse_data": BY_POSITION,
        "check_fit2d_1sample": "one record is an error that names k, not the samples",
    },
    "GradientBoostingRegressor": {
        "check_regressors_train": "the check sets alpha, which is an error where the objective does not read it"
    },
}
ESTIMATORS = [name for name in seraphim.__all__ if hasattr(getattr(seraphim, name), "algorithm")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_passes_the_checks(name):
    estimator = getattr(seraphim, name)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(
            estimator, on_fail=None, on_skip=None, expected_failed_checks=EXPECTED.get(name, {})
        )
    failed = [(one["check_name"], str(one["exception"])) for one in results if one["status"] == "failed"]
    assert not failed
    # An exception that is no longer needed leaves the list.
    unexpected = {one["check_name"] for one in results if one["status"] == "passed"} & set(EXPECTED.get(name, {}))
    assert not unexpected


def test_an_estimator_is_part_of_pipelines_and_searches(rows):
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = rows
    search = GridSearchCV(seraphim.LogisticRegression(), {"l2": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.85
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()
    pipeline = make_pipeline(StandardScaler(), seraphim.GradientBoostingClassifier(iterations=10))
    assert pipeline.fit(X, y).score(X, y) > 0.85
