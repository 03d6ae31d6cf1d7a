"""Seraphim and scikit-learn side by side: fit on the same arrays with the defaults of both, quality on the test data.

    python benchmarks/against_sklearn.py --data ../../shared/data [--rounds 5] [NAME ...]

The two take turns; times are medians of whole fits, the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pandas
import sklearn.cluster
import sklearn.compose
import sklearn.datasets
import sklearn.ensemble
import sklearn.linear_model
import sklearn.metrics
import sklearn.pipeline
import sklearn.preprocessing

import seraphim

Case = tuple[Any, Any, Callable[[Any], float], tuple[Any, Any]]


def libsvm(folder: Path, features: int | None = None) -> tuple[Any, Any, Any, Any]:
    train = sklearn.datasets.load_svmlight_file(str(folder / "train.libsvm.gz"), n_features=features)
    test = sklearn.datasets.load_svmlight_file(str(folder / "test.libsvm.gz"), n_features=train[0].shape[1])
    return *train, *test


def accuracy(X: Any, y: Any) -> Callable[[Any], float]:
    return lambda model: float(np.mean(model.predict(X) == y))


def a9a(data: Path) -> Case:
    X, y, Xt, yt = libsvm(data / "a9a")
    peer = sklearn.linear_model.LogisticRegression(max_iter=1000)
    return seraphim.LogisticRegression(), peer, accuracy(Xt, yt), (X, y)


def news20(data: Path) -> Case:
    X, y, Xt, yt = libsvm(data / "news20")
    peer = sklearn.linear_model.LogisticRegression(max_iter=1000)
    return seraphim.SoftmaxRegression(), peer, accuracy(Xt, yt), (X, y)


def adult(data: Path) -> Case:
    train, test = (pandas.read_csv(data / "adult_raw" / f"{name}.csv.gz") for name in ("train", "test"))
    X, Xt = train.drop(columns="income"), test.drop(columns="income")
    texts = X.select_dtypes(exclude="number").columns.tolist()
    encoder = sklearn.compose.ColumnTransformer(
        [("texts", sklearn.preprocessing.OneHotEncoder(handle_unknown="ignore"), texts)],
        remainder=sklearn.preprocessing.StandardScaler(),
    )
    peer = sklearn.pipeline.make_pipeline(encoder, sklearn.linear_model.LogisticRegression(max_iter=1000))
    return seraphim.LogisticRegression(), peer, accuracy(Xt, test["income"]), (X, train["income"])


def adult_trees(data: Path) -> Case:
    train, test = (pandas.read_csv(data / "adult_raw" / f"{name}.csv.gz") for name in ("train", "test"))
    X, Xt = train.drop(columns="income"), test.drop(columns="income")
    texts = X.select_dtypes(exclude="number").columns
    X, Xt = (table.astype({name: "category" for name in texts}) for table in (X, Xt))
    peer = sklearn.ensemble.HistGradientBoostingClassifier(categorical_features="from_dtype")
    return seraphim.GradientBoostingClassifier(), peer, accuracy(Xt, test["income"]), (X, train["income"])


def fashion(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    import gzip

    arrays = []
    for part in ("train", "test"):
        for kind, skip in (("images-idx3", 16), ("labels-idx1", 8)):
            name = next((data / "fashion_mnist").glob(f"{part}-{kind}-ubyte*"))
            content = (gzip.open(name) if name.suffix == ".gz" else open(name, "rb")).read()
            arrays.append(np.frombuffer(content, np.uint8, offset=skip))
    X, y, Xt, yt = arrays
    return (X.reshape(-1, 784) / np.float32(255)), y, (Xt.reshape(-1, 784) / np.float32(255)), yt


def fashion_linear(data: Path) -> Case:
    X, y, Xt, yt = fashion(data)
    peer = sklearn.linear_model.LogisticRegression(max_iter=100)
    return seraphim.SoftmaxRegression(), peer, accuracy(Xt, yt), (X, y)


def fashion_kmeans(data: Path) -> Case:
    X, _, _, _ = fashion(data)
    peer = sklearn.cluster.KMeans(n_clusters=10, n_init=1, random_state=1)
    quality = lambda model: float(np.mean(np.min(model.transform(X), axis=1) ** 2)) if hasattr(model, "transform") else -model.score(X) / len(X)
    return seraphim.KMeans(k=10), peer, quality, (X, None)


def california(data: Path) -> Case:
    folder = data / "california"
    train, test = (pandas.read_csv(next(folder.glob(f"{name}*.csv*"))) for name in ("train", "test"))
    label = train.columns[-1]
    X, Xt = (table.drop(columns=label).to_numpy() for table in (train, test))
    quality = lambda model: sklearn.metrics.root_mean_squared_error(test[label], model.predict(Xt))
    peer = sklearn.ensemble.HistGradientBoostingRegressor()
    return seraphim.GradientBoostingRegressor(), peer, quality, (X, train[label].to_numpy())


CASES = [a9a, adult, adult_trees, news20, fashion_linear, fashion_kmeans, california]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("names", nargs="*")
    request = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'work':<16} {'seraphim s':>11} {'peer s':>8} {'ratio':>6} {'quality':>9} {'peer':>9}")
    for case in CASES:
        if request.names and case.__name__ not in request.names:
            continue
        own, peer, quality, arguments = case(request.data)
        times: dict[str, list[float]] = {"own": [], "peer": []}
        for _ in range(request.rounds):
            for name, model in (("own", own), ("peer", peer)):
                start = time.perf_counter()
                model.fit(*arguments)
                times[name].append(time.perf_counter() - start)
        ours, theirs = (statistics.median(times[name]) for name in ("own", "peer"))
        print(
            f"{case.__name__:<16} {ours:>11.3f} {theirs:>8.3f} {ours / theirs:>6.2f} {quality(own):>9.4f} {quality(peer):>9.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
