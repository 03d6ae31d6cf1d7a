"""scikit-learn with its defaults on one data set, its columns prepared as its documentation says to.

  python3 defaults.py CASE TRAIN TEST     prints one line of JSON: fit_s (reading included), and the metric of the case
"""
import json
import sys
import time
import warnings

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

warnings.filterwarnings("ignore")


def table(model, missing=False):
    """Names become one-hot columns, numbers are standardized; where some are missing, the mean and an indicator."""
    scaler = StandardScaler()
    numbers = make_pipeline(SimpleImputer(add_indicator=True), scaler) if missing else scaler
    return make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
            (numbers, make_column_selector(dtype_include="number")),
        ),
        model,
    )


def columns(label, separator=",", header="infer", skip=()):
    def read(path):
        frame = pd.read_csv(path, sep=separator, header=header).rename(columns=str)
        y = frame.pop(label)
        return frame.drop(columns=list(skip)), y

    return read


def sparse(dimensions, zero_based=False):
    return lambda path: load_svmlight_file(path, n_features=dimensions, zero_based=zero_based)


def auc(model, x, y):
    return {"auc": roc_auc_score(y, model.predict_proba(x)[:, 1])}


def accuracy(model, x, y):
    return {"accuracy": accuracy_score(y, model.predict(x))}


def r2(model, x, y):
    return {"r2": r2_score(y, model.predict(x))}


CASES = {
    "a9a": (sparse(123), LogisticRegression(), auc),
    "agaricus": (sparse(127), LogisticRegression(), auc),
    "adult_raw": (columns("income"), table(LogisticRegression()), auc),
    "higgs7k": (columns("0", "\t", None), table(LogisticRegression()), auc),
    "criteo_tiny": (columns("Label", skip=["Id"]), table(LogisticRegression(), missing=True), auc),
    "frappe": (sparse(5382, True), LogisticRegression(), auc),
    "california": (columns("target"), table(LinearRegression()), r2),
    "abalone": (sparse(8), LinearRegression(), r2),
    "news20": (sparse(44775, True), make_pipeline(TfidfTransformer(), LogisticRegression()), accuracy),
    "multi5": (columns("0", "\t", None), table(LogisticRegression()), accuracy),
    "fashion_mnist": (sparse(784, True), LogisticRegression(), accuracy),
}


def main():
    case, train, test = sys.argv[1:]
    read, model, metric = CASES[case]
    start = time.perf_counter()
    model.fit(*read(train))
    fit_s = time.perf_counter() - start
    print(json.dumps({"fit_s": fit_s, **metric(model, *read(test))}))


if __name__ == "__main__":
    main()
