"""Topics of documents: tomotopy, and the measure of any topics.

  python3 topics.py tomotopy TRAIN TEST TOPICS SWEEPS   collapsed Gibbs sampling on one core: fit_s, perplexity
  python3 topics.py table TRAIN TEST TABLE.csv BETA     the perplexity of a table with the counts of words in topics

Files are libsvm with word:count. The perplexity is that of document completion on the first 2,000 documents of TEST: the tokens go
alternately to A and B, the shares of topics are fitted on A by 100 steps of EM with the prior 0.1, and it is exp(-mean log p(token)) on B.
"""
import json
import sys
import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_files

DOCUMENTS = 2000


def perplexity(phi, documents, alpha=0.1, steps=100):
    phi = phi + 1e-12
    phi /= phi.sum(1, keepdims=True)
    total = count = 0
    for i in range(documents.shape[0]):
        row = documents[i]
        words = np.repeat(row.indices, row.data.astype(int))
        given, hidden = words[0::2], words[1::2]
        if not len(hidden):
            continue
        distinct, times = np.unique(given, return_counts=True)
        known, shares = phi[:, distinct], np.full(len(phi), 1 / len(phi))
        for _ in range(steps):
            parts = shares[:, None] * known
            shares = (parts * (times / parts.sum(0))).sum(1) + alpha
            shares /= shares.sum()
        total += np.log(shares @ phi[:, hidden]).sum()
        count += len(hidden)
    return float(np.exp(-total / count))


kind, train, test = sys.argv[1:4]
x, _, held, _ = load_svmlight_files([train, test], zero_based=True)
held = held[:DOCUMENTS]
width, out = x.shape[1], {}
if kind == "tomotopy":
    import tomotopy

    topics, sweeps = int(sys.argv[4]), int(sys.argv[5])
    model = tomotopy.LDAModel(k=topics, alpha=0.1, eta=0.01, seed=1)
    for i in range(x.shape[0]):
        row = x[i]
        model.add_doc(np.repeat(row.indices, row.data.astype(int)).astype(str).tolist())
    start = time.time()
    model.train(sweeps, workers=1)
    out["fit_s"] = time.time() - start
    words = [int(word) for word in model.used_vocabs]
    phi = np.zeros((topics, width))
    for topic in range(topics):
        phi[topic, words] = model.get_topic_word_dist(topic)
else:
    table, beta = pd.read_csv(sys.argv[4]), float(sys.argv[5])
    counts = table.filter(like="topic_").to_numpy(float)
    phi = np.zeros((counts.shape[1], width))
    phi[:, table[table.columns[0]].to_numpy(int)] = ((counts + beta) / (counts.sum(0) + beta * len(counts))).T
out["perplexity"] = perplexity(phi, held)
print(json.dumps(out))
