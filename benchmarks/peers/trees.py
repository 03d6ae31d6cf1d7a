"""LightGBM from a text file to a saved model.

  python3 trees.py TRAIN TEST KEY=VALUE..    prints one line of JSON: seconds (reading included, without imports), fit_s, peak_mb, and
                                             the metric on TEST (auc or rmse), predict_s and contributions_s; the keys are parameters of LightGBM.
                                             TEST may be "-". Files are CSV with the label last (names are categories) or libsvm.
"""
import json
import resource
import sys
import time

import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import mean_squared_error, roc_auc_score


def read(path, categories=None):
    if ".libsvm" in path:
        return *load_svmlight_file(path, n_features=10_001), None
    frame = pd.read_csv(path)
    y = frame.pop(frame.columns[-1])
    if not pd.api.types.is_numeric_dtype(y):
        y = (y == sorted(y.unique())[1]).astype(int)
    names = {c: sorted(frame[c].dropna().unique()) for c in frame.select_dtypes(exclude="number")} if categories is None else categories
    for column, known in names.items():
        frame[column] = pd.Categorical(frame[column], categories=known)
    return frame, y, names


train, test = sys.argv[1:3]
given = dict(pair.split("=", 1) for pair in sys.argv[3:])
rounds = int(given.pop("rounds", "100"))
start = time.time()
x, y, names = read(train)
loaded = time.time()
model = lgb.train(dict({"verbose": -1, "seed": 1}, **given), lgb.Dataset(x, y), rounds)
end = time.time()
model.save_model("/dev/null")
out = {"seconds": time.time() - start, "fit_s": end - loaded, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
if test != "-":
    x, y, _ = read(test, names)
    threads = int(given.get("num_threads", "0"))
    start = time.time()
    scores = model.predict(x, num_threads=threads)
    out["predict_s"] = time.time() - start
    if given["objective"] == "binary":
        out["auc"] = roc_auc_score(y, scores)
    else:
        out["rmse"] = float(np.sqrt(mean_squared_error(y, scores)))
print(json.dumps(out))
