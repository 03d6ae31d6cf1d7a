"""What the pages and docstrings show runs as it is written there."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import seraphim

PACKAGE = Path(__file__).parents[1]


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", (PACKAGE / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    exec(code, {})


@pytest.mark.parametrize("module", ["seraphim", "seraphim._loops", "seraphim._estimators", "seraphim.plots"])
def test_the_examples_of_docstrings_run(module):
    if module == "seraphim.plots":
        pytest.importorskip("matplotlib")
    names = {name: getattr(seraphim, name) for name in seraphim.__all__}
    result = doctest.testmod(importlib.import_module(module), extraglobs=names)
    assert result.failed == 0


def test_the_command_comes_with_the_package(tmp_path):
    told = subprocess.run([sys.executable, "-m", "seraphim", "--version"], capture_output=True, text=True)
    assert told.stdout.strip() == f"seraphim {seraphim.__version__}"
    script = Path(sys.executable).with_name("seraphim")
    assert subprocess.run([script, "algorithms", "lr"], capture_output=True, text=True).returncode == 0
    wrong = subprocess.run([script, "train", "lr", "--no-such-flag"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "--no-such-flag" in wrong.stderr


def test_the_command_starts_servers_and_workers(tmp_path):
    words = "generate ctr --rows 2000 --test-rows 100 --dimensions 500 --output data --overwrite"
    subprocess.run([sys.executable, "-m", "seraphim", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    words = "train lr --data data/train.libsvm --model model --servers 2 --workers 2 --quiet"
    subprocess.run([sys.executable, "-m", "seraphim", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    assert seraphim.load(tmp_path / "model").evaluate(str(tmp_path / "data" / "test.libsvm"))["records"] == 100
