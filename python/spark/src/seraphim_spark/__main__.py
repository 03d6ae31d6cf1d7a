"""`python -m seraphim_spark` prints the jars as `spark-submit --jars` takes them."""

from seraphim_spark import jars

print(",".join(jars()))
