import os
from pathlib import Path

import numpy as np
import pytest

DATA = Path(os.environ.get("SERAPHIM_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))


@pytest.fixture
def rows():
    """300 rows of four numbers with two classes, some of whose values are missing."""
    random = np.random.default_rng(7)
    X = random.normal(size=(300, 4))
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.3 * random.normal(size=300) > 0).astype(int)
    X[random.random(X.shape) < 0.05] = np.nan
    return X, y


@pytest.fixture
def table():
    """A table with a column of texts, missing values, and classes with names."""
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(7)
    color = random.choice(["red", "green", "blue"], 400)
    size = random.normal(size=400)
    answer = np.where((color == "red") | (size > 1), "yes", "no")
    table = pandas.DataFrame({"color": color, "size": size, "answer": answer})
    table.loc[::17, "size"] = np.nan
    table.loc[::23, "color"] = None
    return table


@pytest.fixture
def adult():
    pandas = pytest.importorskip("pandas")
    return [pandas.read_csv(DATA / "adult_raw" / f"{name}.csv.gz") for name in ("train", "test")]
