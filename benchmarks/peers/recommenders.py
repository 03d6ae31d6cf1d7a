"""Lists of 20 items for all users with implicit, without the items that they have.

  python3 recommenders.py TRAIN.txt.gz THREADS   fits a model of 64 factors, and prints the seconds of its lists

A line of TRAIN is a user with its items. The model is in memory, and the lists stay there.
"""
import gzip
import json
import sys
import time

import implicit
import numpy as np
import scipy.sparse as sp

users, items = [], []
for line in gzip.open(sys.argv[1], "rt"):
    first, *others = (int(word) for word in line.split())
    users += [first] * len(others)
    items += others
matrix = sp.csr_matrix((np.ones(len(users), np.float32), (users, items)))
model = implicit.als.AlternatingLeastSquares(factors=64, iterations=2, num_threads=int(sys.argv[2]), random_state=1, use_gpu=False)
model.fit(matrix, show_progress=False)
model.num_threads = int(sys.argv[2])
start = time.perf_counter()
lists, _ = model.recommend(np.arange(matrix.shape[0]), matrix, N=20, filter_already_liked_items=True)
print(json.dumps({"seconds": time.perf_counter() - start, "users": len(lists)}))
