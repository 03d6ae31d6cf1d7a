"""Runs on a cluster: trains on one and on two executors, scores, and has a vector on the servers of the plugin."""

import random

from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

from seraphim_spark import SeraphimLogisticRegression

RECORDS = 2000

spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
source = random.Random(1)
points = [(source.gauss(0, 1), source.gauss(0, 1)) for _ in range(RECORDS)]
rows = context.parallelize([(float(a + b > 0), Vectors.dense(a, b)) for a, b in points], 4)
frame = spark.createDataFrame(rows, ["label", "features"])

models = [SeraphimLogisticRegression(numWorkers=workers).fit(frame) for workers in (1, 2)]
for model in models:
    right = model.transform(frame).filter("prediction = label").count()
    assert right > 0.95 * RECORDS, right
one, two = (list(model.coefficients) for model in models)
assert all(abs(a - b) < 1e-3 * abs(a) for a, b in zip(one, two)), (one, two)

pool = spark._jvm.org.seraphim.spark.VectorPool.open(spark._jsc.sc(), 1000, 8)
vector = pool.fill(2.0)
assert sum(vector.pull()) == 2000.0
assert vector.dot(vector) == 4000.0
pool.close()

spark.stop()
print("PASSED")
