import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import seraphim
from conftest import DATA
from seraphim import GradientBoostingClassifier, KMeans, LinearRegression, LogisticRegression


def model_bytes(estimator, folder):
    estimator.save(folder)
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "model.json"}


def command(*arguments):
    ended = subprocess.run([sys.executable, "-m", "seraphim", *map(str, arguments)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("kind", [LogisticRegression, GradientBoostingClassifier])
def test_a_table_with_texts_and_missing_values_gives_the_model_of_the_command(kind, adult, tmp_path):
    train, test = adult
    estimator = kind().fit(train.drop(columns="income"), train["income"])
    accuracy = estimator.score(test.drop(columns="income"), test["income"])
    assert accuracy > 0.85
    assert estimator.classes_.tolist() == ["<=50K", ">50K"]
    estimator.save(tmp_path / "model")
    again = seraphim.load(tmp_path / "model")
    assert type(again) is kind
    assert (again.predict(test.drop(columns="income")) == estimator.predict(test.drop(columns="income"))).all()
    told = command("evaluate", "--model", tmp_path / "model", "--data", DATA / "adult_raw" / "test.csv.gz", "--json")
    import json

    assert json.loads(told)["metrics"]["accuracy"] == pytest.approx(accuracy, abs=1e-12)


def test_files_give_the_bytes_of_the_command(tmp_path):
    file = DATA / "a9a" / "a9a"
    file = file if file.exists() else next((DATA / "a9a").glob("*train*"))
    model_bytes_of_fit = model_bytes(LogisticRegression(tasks=2).fit(str(file)), tmp_path / "fit")
    command("train", "lr", "--data", file, "--tasks", 2, "--model", tmp_path / "command", "--quiet")
    own = {name: content for name, content in model_bytes_of_fit.items()}
    assert own
    for name, content in own.items():
        assert (tmp_path / "command" / name).read_bytes() == content, name


def test_any_form_of_a_table_gives_the_same_predictions(table):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    X, y = table[["color", "size"]], table["answer"]
    expected = GradientBoostingClassifier(iterations=20).fit(X, y).predict_proba(X)
    forms = [
        X.astype({"color": "category"}),
        X.astype({"color": "string"}),
        polars.DataFrame({name: [None if v != v else v for v in X[name]] for name in X}),
        pyarrow.Table.from_pandas(X, preserve_index=False),
    ]
    for form in forms:
        estimator = GradientBoostingClassifier(iterations=20).fit(form, y)
        np.testing.assert_array_equal(estimator.predict_proba(X), expected)
        np.testing.assert_array_equal(estimator.predict_proba(form), expected)
    both = GradientBoostingClassifier(iterations=20).fit(table, "answer")
    np.testing.assert_array_equal(both.predict_proba(X), expected)
    assert both.classes_.tolist() == ["no", "yes"]


def test_sparse_and_dense_rows_have_the_same_features(rows):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    X, y = np.nan_to_num(rows[0]), rows[1]
    X[X < 0] = 0.0
    matrix = scipy_sparse.csr_matrix(X)
    for first, second in [(X, matrix), (matrix, X)]:
        estimator = LogisticRegression(standardize=False).fit(first, y)
        np.testing.assert_allclose(estimator.predict_proba(first), estimator.predict_proba(second), rtol=1e-6)
    coordinates = matrix.tocoo()
    shuffled = np.random.default_rng(1).permutation(coordinates.nnz)
    places = (coordinates.row[shuffled], coordinates.col[shuffled])
    unsorted = scipy_sparse.coo_matrix((coordinates.data[shuffled], places), shape=X.shape).tocsr()
    with_zeros = matrix.copy()
    with_zeros.data[:5] = 0.0
    without = with_zeros.copy()
    without.eliminate_zeros()
    fit = lambda rows: LogisticRegression().fit(rows, y).predict_proba(matrix)
    np.testing.assert_array_equal(fit(unsorted), fit(matrix))
    np.testing.assert_array_equal(fit(with_zeros), fit(without))


def test_weights_of_zero_are_records_that_are_not_there(rows):
    X, y = rows
    weights = np.ones(len(y))
    weights[::3] = 0.0
    weighted = LogisticRegression(tasks=1).fit(X, y, weights)
    fewer = LogisticRegression(tasks=1).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_allclose(weighted.predict_proba(X), fewer.predict_proba(X), atol=1e-6)


def test_precision_is_kept_and_single_precision_is_not_copied():
    days = 1_764_200_000.0 + np.arange(1000.0)
    y = (days - days[0]) * 2.0
    estimator = LinearRegression().fit(days.reshape(-1, 1), y)
    assert estimator.score(days.reshape(-1, 1), y) > 0.999999
    single = np.random.default_rng(1).normal(size=(2_000_000, 16)).astype(np.float32)
    labels = (single[:, 0] > 0).astype(int)
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    LogisticRegression(optimizer="ftrl", epochs=1).fit(single, labels)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < 6 * single.nbytes, "the run caches records; the array itself is read where it is"


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [1, 2], [3, 7], ["no", "yes"], [False, True], [2.0, 5.0]])
@pytest.mark.parametrize("kind", [LogisticRegression, GradientBoostingClassifier, seraphim.LinearSVC])
def test_two_classes_may_be_any_labels(kind, labels, rows, tmp_path):
    X, y = rows
    own = np.asarray(labels)[y]
    estimator = kind().fit(X, own)
    assert estimator.classes_.tolist() == labels
    assert estimator.score(X, own) > 0.85
    assert estimator.evaluate(X, own)["metrics"]["accuracy"] == pytest.approx(estimator.score(X, own))
    expected = kind().fit(X, y).decision_function(X)
    np.testing.assert_allclose(estimator.decision_function(X), expected)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))


@pytest.mark.parametrize("labels", [[0, 1, 2], [10, 2, 33], ["a", "b", "c"]])
@pytest.mark.parametrize("kind", [seraphim.SoftmaxRegression, GradientBoostingClassifier])
def test_several_classes_keep_their_order(kind, labels, rows):
    X = np.nan_to_num(rows[0])
    y = np.asarray(labels)[np.digitize(X[:, 0], [-0.5, 0.5])]
    estimator = kind().fit(X, y)
    assert estimator.classes_.tolist() == sorted(labels)
    assert estimator.predict_proba(X).shape == (300, 3)
    assert estimator.score(X, y) > 0.85


def test_a_class_of_estimators_says_what_numbers_are(rows, table):
    X, y = rows
    regressor = seraphim.GradientBoostingRegressor(iterations=5).fit(X, y)
    assert regressor.report_["settings"]["objective"] == "squared", "amounts, though there are two"
    grades = table.assign(answer=np.arange(400) % 3)[["size", "answer"]]
    with pytest.raises(ValueError, match="objective='softmax'"):
        GradientBoostingClassifier(iterations=2).fit(grades, "answer")
    fitted = GradientBoostingClassifier(iterations=2, objective="softmax").fit(grades, "answer")
    assert fitted.classes_.tolist() == [0, 1, 2]
    objects = np.array([1, 2], dtype=object)[y]
    assert LogisticRegression().fit(X, objects).classes_.tolist() == [1, 2]


def test_recommenders_take_tables_and_matrices():
    pandas, scipy_sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    ratings = pandas.read_csv(DATA / "ml-100k" / "train.tsv.gz", sep="\t", dtype=str)
    ratings.columns = ["user", "item", "rating", "time"]
    ratings["rating"] = ratings["rating"].astype(float)
    estimator = seraphim.ALS(factors=8, iterations=5).fit(ratings[["user", "item", "rating"]], "rating")
    (best,) = estimator.recommend(["1"], 5)
    assert len(best) == 5 and all(isinstance(item, str) for item, _ in best)
    (similar,) = estimator.similar_items(["50"], 3)
    assert len(similar) == 3
    again = pickle.loads(pickle.dumps(estimator))
    assert again.recommend(["1"], 5) == [best]
    choices = scipy_sparse.csr_matrix(np.random.default_rng(1).random((50, 30)) < 0.2, dtype=float)
    (best,) = seraphim.ImplicitALS(factors=4, iterations=3).fit(choices).recommend([7], 4)
    assert {int(item) for item, _ in best}.isdisjoint(choices[7].indices)


def test_validation_data_are_read_as_the_training_data(table, rows):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    X, y = table[["color", "size"]], table["answer"]
    double = np.where(y == "yes", 2.0, 0.0)
    settings = {"optimizer": "ftrl", "epochs": 2, "shuffle": "none"}

    def metrics(eval_set, weight=None, X=X, y=y):
        estimator = LogisticRegression(**settings).fit(X, y, weight, eval_set=eval_set)
        return estimator.report_["epochs"][-1]["validation"]

    # The labels have another name, or none; weights of one side are those of the other, too.
    plain = metrics((X, y))
    assert metrics((X, y.rename("other"))) == metrics((X, y.to_numpy())) == plain
    weighted = metrics((X, y, double))
    assert weighted["accuracy"] != plain["accuracy"]
    assert metrics((X, y, np.ones(400))) == metrics((X, y), np.ones(400)) == plain
    dense, labels = np.nan_to_num(rows[0]), rows[1]
    sparse = scipy_sparse.csr_matrix(dense)
    for train in (dense, sparse):
        assert metrics((sparse, labels), X=train, y=labels) == metrics((dense, labels), X=train, y=labels)


def test_a_fit_that_fails_leaves_the_model_as_it_was(rows):
    X, y = rows
    estimator = LogisticRegression().fit(X, np.array(["no", "yes"])[y])
    before = estimator.predict(X)
    with pytest.raises(ValueError):
        estimator.fit(X * 1e300, y)
    assert estimator.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(estimator.predict(X), before)


def test_epochs_are_told_and_a_callback_stops(rows):
    X, y = rows
    told = []
    estimator = LogisticRegression(optimizer="ftrl", epochs=20)
    estimator.fit(X, y, eval_set=(X, y), callback=lambda epoch: told.append(epoch) or len(told) == 3)
    assert [epoch["epoch"] for epoch in told] == [0, 1, 2]
    assert all("auc" in epoch["validation"] for epoch in told)
    assert estimator.n_iter_ in (3, 4), "it ends at the next step"
    assert estimator.report_["ended_by"] == "interrupted"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ZeroDivisionError])
def test_an_exception_in_a_callback_ends_the_run_and_keeps_the_model(raised, rows):
    X, y = rows

    def fail(epoch):
        raise raised("in the callback")

    estimator = LogisticRegression(optimizer="ftrl", epochs=20)
    with pytest.raises(raised, match="in the callback"):
        estimator.fit(X, y, callback=fail)
    assert estimator.score(X, y) > 0.6, "the model so far"


def test_ctrl_c_stops_cleanly_and_keeps_the_model(rows):
    X, y = rows
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    estimator = LogisticRegression(optimizer="ftrl", epochs=1_000_000)
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, y)
    assert time.monotonic() - start < 10
    assert estimator.score(X, y) > 0.8


def test_the_interpreter_is_free_and_fits_run_side_by_side(rows):
    X, y = rows
    results = [None, None]

    def fit(at):
        results[at] = GradientBoostingClassifier(seed=3).fit(X, y).predict_proba(X)

    threads = [threading.Thread(target=fit, args=(at,)) for at in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    np.testing.assert_array_equal(results[0], results[1])


def _fit_in_child(queue, X, y):
    queue.put(LogisticRegression().fit(X, y).predict_proba(X))


def test_a_fork_after_a_fit_may_fit(rows):
    X, y = rows
    expected = LogisticRegression().fit(X, y).predict_proba(X)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_fit_in_child, args=(queue, X, y))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected)
    child.join()


def test_training_continues_from_a_model(rows, tmp_path):
    X, y = rows
    settings = {"optimizer": "ftrl", "shuffle": "none", "standardize": False}
    whole = LogisticRegression(epochs=4, **settings).fit(X, y)
    half = LogisticRegression(epochs=2, **settings).fit(X, y)
    half.save(tmp_path / "half")
    for start in [half, tmp_path / "half"]:
        rest = LogisticRegression(epochs=2, **settings).fit(X, y, init_model=start)
        np.testing.assert_array_equal(rest.predict_proba(X), whole.predict_proba(X))


def test_parts_of_models_have_the_names_of_scikit_learn(rows, table):
    X, y = np.nan_to_num(rows[0]), rows[1]
    linear = LogisticRegression().fit(X, y)
    scores = X @ linear.coef_[0] + linear.intercept_[0]
    np.testing.assert_allclose(linear.decision_function(X), scores, atol=1e-5)
    importances = GradientBoostingClassifier().fit(X, y).feature_importances_
    assert importances.sum() == pytest.approx(1.0) and importances.argmax() == 0
    assert KMeans(k=3).fit(np.nan_to_num(X)).cluster_centers_.shape == (3, 4)
    with pytest.raises(AttributeError, match="has no coef_"):
        GradientBoostingClassifier().fit(X, y).coef_
    of_table = LogisticRegression().fit(table[["color", "size"]], table["answer"])
    with pytest.raises(AttributeError, match="features of texts, files or missing values"):
        of_table.coef_
    assert "color=red" in of_table.table("coefficients")["feature"].tolist()


def test_notices_are_warnings_where_the_program_calls(rows):
    X, y = rows
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seraphim.FMClassifier(learning_rate=30.0, epochs=5).fit(X, y)
    assert caught and all(one.filename == __file__ for one in caught)


def test_importing_is_fast():
    script = "import sys, time; t = time.perf_counter(); import seraphim; print(time.perf_counter() - t, 'numpy' in sys.modules)"
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.split() for _ in range(5)]
    assert min(float(seconds) for seconds, _ in runs) < 0.06
    assert all(has_numpy == "False" for _, has_numpy in runs)


BAD = [
    (lambda X, y: LogisticRegression().fit(X, y[:-1]), ValueError, "inconsistent numbers of samples: X has 300 and y has 299"),
    (lambda X, y: LogisticRegression().fit(X, y, np.ones(7)), ValueError, "sample_weight has 7"),
    (lambda X, y: LogisticRegression().fit(X, y, -np.ones(300)), ValueError, "weight of record 0 is -1"),
    (lambda X, y: LogisticRegression().fit(np.full_like(X, np.inf), y), ValueError, "infinity in row 0, column 0"),
    (lambda X, y: LogisticRegression().fit(X * 1e300, y), ValueError, "within the range of f32"),
    (lambda X, y: LinearRegression().fit(X, np.where(y == 1, np.nan, 1.0)), ValueError, "y contains NaN"),
    (lambda X, y: LogisticRegression().fit(X, np.where(y == 1, np.nan, 1.0)), ValueError, "y contains NaN"),
    (lambda X, y: LogisticRegression().fit(X.astype(str), y), ValueError, "texts where numbers are expected"),
    (lambda X, y: LogisticRegression().fit([[1, {}]], [1]), ValueError, "has {} .dict."),
    (lambda X, y: LogisticRegression().fit(np.empty((0, 3)), []), ValueError, "0 sample"),
    (lambda X, y: LogisticRegression().fit(np.empty((3, 0)), [0, 1, 0]), ValueError, "0 feature"),
    (lambda X, y: LogisticRegression().fit(X, np.zeros(300)), ValueError, "class"),
    (lambda X, y: LogisticRegression().fit(X, y + 0.5), ValueError, "fractions"),
    (lambda X, y: LogisticRegression().fit(X, np.arange(300) % 3), ValueError, "has 3 classes, and LogisticRegression learns two"),
    (lambda X, y: LogisticRegression().fit(X, [None, *y[1:]]), ValueError, "several types|missing"),
    (lambda X, y: LogisticRegression().fit(np.array([[2**53 + 1], [1]]), [0, 1]), ValueError, "beyond 2\\^53"),
    (lambda X, y: LogisticRegression().fit(X), ValueError, "requires y to be passed"),
    (lambda X, y: LogisticRegression().fit("a.csv", "y", np.ones(3)), ValueError, "weight='...'"),
    (lambda X, y: LogisticRegression().fit("a.csv", "y", np.ones(3), cluster="h:1", model="m"), ValueError, "sample_weight is not for"),
    (lambda X, y: seraphim.ALS().fit("a.csv", "r", np.ones(3)), ValueError, "takes no sample_weight"),
    (lambda X, y: LogisticRegression().fit("no/such/file.csv", "y"), OSError, "no/such/file.csv"),
    (lambda X, y: LogisticRegression(l2=-1).fit(X, y), ValueError, "l2 of lr is \"-1\", expected auto or a number >= 0"),
    (lambda X, y: LogisticRegression(optimizer="newton").fit(X, y), ValueError, "optimizer of lr is \"newton\""),
    (lambda X, y: LogisticRegression(epochs="many").fit(X, y), ValueError, "epochs"),
    (lambda X, y: LogisticRegression(epoch=3), TypeError, "did you mean 'epochs'"),
    (lambda X, y: LogisticRegression().set_params(epoch=3), ValueError, "did you mean 'epochs'"),
    (lambda X, y: LogisticRegression().fit(X, y, consistensy="asp"), ValueError, "consistency"),
    (lambda X, y: LogisticRegression().predict(X), AttributeError, "not fitted"),
    (lambda X, y: LogisticRegression().fit(X, y).predict(X[:, :2]), ValueError, "has 2 features, but LogisticRegression is expecting 4"),
    (lambda X, y: LogisticRegression().fit(X, y, eval_set=X), ValueError, "eval_set is a pair"),
    (lambda X, y: seraphim.load("no/such/model"), (ValueError, OSError), "no/such/model"),
    (lambda X, y: seraphim.ALS().fit(X), ValueError, "a user, an item and a rating"),
    (lambda X, y: seraphim.GradientBoostingRanker().fit(X, y), ValueError, "groups"),
]


@pytest.mark.parametrize("at", range(len(BAD)))
def test_bad_input_is_a_clear_error(at, rows):
    action, kind, text = BAD[at]
    with pytest.raises(kind, match=text) as caught:
        action(*rows)
    assert "--" not in str(caught.value), "keywords, not flags"


def test_tables_that_do_not_fit_are_clear_errors(table):
    X, y = table[["color", "size"]], table["answer"]
    estimator = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="size"):
        estimator.predict(X[["color"]])
    with pytest.raises(ValueError, match="requires y to be passed"):
        LogisticRegression().fit(table)
    mixed = X.assign(color=[1, *X["color"][1:]])
    with pytest.raises(ValueError, match="column 'color' has texts and, in row 0, 1"):
        LogisticRegression().fit(mixed, y)
    with pytest.raises(ValueError, match="maybe"):
        estimator.evaluate(X, y.where(y == "no", "maybe"))
    # Columns are known by their names, whatever their order.
    np.testing.assert_array_equal(estimator.predict_proba(X[["size", "color"]]), estimator.predict_proba(X))


def test_a_model_is_never_replaced_without_a_word(rows, tmp_path):
    estimator = LogisticRegression().fit(*rows)
    estimator.save(tmp_path / "model")
    with pytest.raises(ValueError, match="overwrite"):
        estimator.save(tmp_path / "model")
    estimator.save(tmp_path / "model", overwrite=True)


def test_the_stub_of_types_has_all_classes_and_parameters():
    from pathlib import Path

    from seraphim import _stubs

    assert Path(seraphim.__file__).with_suffix(".pyi").read_text() == _stubs.stub(), "python -m seraphim._stubs writes it"
