import multiprocessing
import os
import signal
import threading
import time
import urllib.request

import numpy as np
import pytest
import seraphim
from seraphim import Cluster, LogisticRegression


@pytest.mark.parametrize("servers", [0, 2])
def test_tasks_push_pull_and_tick(servers):
    cluster = Cluster(servers=servers, tasks=2)
    cluster.matrix("counts", rows=5, columns=2, dtype="int64")
    cluster.matrix("sparse", columns=3, rule="sgd", rate=0.5, consistency="asp")

    def work(task):
        task["counts"].push([3, 1], [[1, 2], [3, 4]])
        before = task["counts"].pull()
        task.tick()
        after = task["counts"].pull([1, 3, 3])
        task["sparse"].push([2**40], np.ones(3))
        task.barrier()
        return before.sum(), after.tolist(), task["sparse"].pull([7, 2**40]).tolist(), task.all_reduce([1.0, task.number])

    for before, counts, sparse, sums in cluster.run(work):
        assert before == 0, "bsp: pushes of this step are not seen"
        assert counts == [[6, 8], [2, 4], [2, 4]]
        assert sparse == [[0, 0, 0], [-1, -1, -1]]
        assert sums.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("servers", [0, 2])
def test_functions_run_at_the_parameters(servers):
    cluster = Cluster(servers=servers)
    cluster.matrix("rows", rows=3, columns=1000, axis="column", dtype="float64")

    def work(task):
        rows = task["rows"]
        rows.push(None, np.arange(1000.0), row=1)
        task.tick()
        return task.pull_function("rows", "sum", [1])

    assert cluster.run(work) == [sum(range(1000))]


def own_regression(X, y, servers=0, tasks=2, steps=300):
    """Logistic regression by gradient descent, in twenty lines of numpy."""
    cluster = Cluster(servers=servers, tasks=tasks)
    cluster.matrix("w", rows=X.shape[1], dtype="float64", rule="sgd", rate=1.0)

    def work(task):
        own = slice(task.number, None, task.count)
        features, labels = X[own], y[own]
        for _ in range(steps):
            w = task["w"].pull()
            error = 1 / (1 + np.exp(-features @ w)) - labels
            task["w"].push(None, features.T @ error / len(y))
            task.tick()
        return task["w"].pull()

    return cluster.run(work)[0]


@pytest.mark.parametrize("servers", [0, 2])
def test_an_own_loop_finds_the_model_of_the_built_in_one(servers):
    random = np.random.default_rng(3)
    X = np.column_stack([np.ones(500), random.normal(size=(500, 3))])
    y = (random.random(500) < 1 / (1 + np.exp(-X @ [0.3, 1.0, -1.0, 0.5]))).astype(float)
    own = own_regression(X, y, servers, steps=600)
    built_in = LogisticRegression(l2=0, tolerance=1e-12).fit(X[:, 1:], y)
    np.testing.assert_allclose(own[1:], built_in.coef_[0], atol=1e-6)
    np.testing.assert_allclose(own[0], built_in.intercept_[0], atol=1e-6)


def test_servers_give_the_bytes_of_one_process(rows, tmp_path):
    X, y = rows
    for kind in [LogisticRegression, seraphim.GradientBoostingClassifier, seraphim.FMClassifier]:
        here = kind(tasks=2).fit(X, y)
        there = kind(tasks=2).fit(X, y, servers=2)
        for name, estimator in [("here", here), ("there", there)]:
            estimator.save(tmp_path / kind.__name__ / name)
        for file in (tmp_path / kind.__name__ / "here").iterdir():
            if file.name != "model.json":
                assert file.read_bytes() == (tmp_path / kind.__name__ / "there" / file.name).read_bytes(), file


def _join_and_push(address, number, part, attempts):
    matrix = seraphim.connect(address, session=number).matrix("sum", rows=3, dtype="float64")
    for _ in range(attempts):
        matrix.push_once([0, 1, 2], np.full(3, part + 1.0), token=1, part=part)


def test_parts_that_run_twice_count_once():
    with seraphim.Service(servers=2) as service:
        session = seraphim.connect(service.address)
        matrix = session.matrix("sum", rows=3, dtype="float64")
        context = multiprocessing.get_context("spawn")
        arguments = [(service.address, session.number, part, 1 + part % 2) for part in range(4)]
        children = [context.Process(target=_join_and_push, args=one) for one in arguments]
        [child.start() for child in children]
        [child.join(60) for child in children]
        assert all(child.exitcode == 0 for child in children)
        assert matrix.pull().tolist() == [10.0] * 3
        matrix.close_token(1)
        with pytest.raises(OSError, match="closed"):
            matrix.push_once([0], [1.0], token=1, part=9)


def test_a_task_that_fails_ends_the_others():
    cluster = Cluster(tasks=2)
    cluster.matrix("w", rows=2)

    def work(task):
        if task.number == 1:
            raise ZeroDivisionError("task 1 fails")
        for _ in range(1000):
            task["w"].push(None, [1.0, 1.0])
            task.tick()
            task["w"].pull()

    start = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="task 1 fails"):
        cluster.run(work)
    assert time.monotonic() - start < 10


def test_the_interpreter_is_free_while_a_task_waits():
    cluster = Cluster(tasks=2)
    cluster.matrix("w", rows=1)
    slow = threading.Event()

    def work(task):
        if task.number == 0:
            slow.wait(0.5)
        task["w"].push(None, [1.0])
        task.tick()
        return float(task["w"].pull()[0])

    assert cluster.run(work) == [2.0, 2.0]


BAD = [
    (lambda: Cluster(tasks=0), "at least one task"),
    (lambda: Cluster().matrix("w", dtype="complex64"), "dtype of the matrix 'w'"),
    (lambda: Cluster().matrix("w", rule="sdg"), "rule of the matrix 'w' is 'sdg'"),
    (lambda: Cluster().matrix("w", rule="sgd", speed=1), "no setting 'speed'; it has rate"),
    (lambda: Cluster().matrix("w", consistency="fast"), "bsp, ssp:N or asp"),
    (lambda: one().push([1, 1], [1.0, 2.0]), "pushed twice"),
    (lambda: one().push([-1], [1.0]), "at least 0"),
    (lambda: one().push([0.5], [1.0]), "whole numbers"),
    (lambda: one().push([0, 1], [1.0]), "2 keys of 'w' have 2 values, and 1 are given"),
    (lambda: one().pull([4]), "4"),
    (lambda: one().push([0], [np.nan]), "NaN|finite"),
    (lambda: seraphim.connect("127.0.0.1:1"), "127.0.0.1:1"),
]


def one():
    cluster = Cluster()
    cluster.matrix("w", rows=4)
    return cluster.task(0)["w"]


@pytest.mark.parametrize("at", range(len(BAD)))
def test_bad_input_is_a_clear_error(at):
    action, text = BAD[at]
    with pytest.raises(seraphim.SeraphimError, match=text):
        action()


def _server_processes():
    from pathlib import Path

    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == os.getpid() and b"server" in words:
            yield int(folder.name)


def test_a_server_that_dies_is_a_clear_error(rows):
    X, y = rows
    estimator = LogisticRegression(optimizer="ftrl", epochs=1_000_000)

    def kill():
        for _ in range(200):
            servers = list(_server_processes())
            if len(servers) == 2:
                time.sleep(1)
                return os.kill(servers[0], signal.SIGKILL)
            time.sleep(0.1)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(OSError, match="server-"):
        estimator.fit(X, y, servers=2)
    killer.join()
    assert not list(_server_processes()), "the other server ends with the training"
    assert LogisticRegression().fit(X, y, servers=2).score(X, y) > 0.8


def test_a_running_cluster_trains_and_gives_the_same_bytes(tmp_path):
    import subprocess
    import sys

    def start(*words):
        return subprocess.Popen([sys.executable, "-m", "seraphim", *words, "--log", "warn"], stdin=subprocess.DEVNULL)

    port = 20000 + os.getpid() % 10000
    address = f"127.0.0.1:{port}"
    text = "".join(f"{i % 2},{i % 7},{(i * 3) % 5}\n" for i in range(500))
    (tmp_path / "data.csv").write_text("label,a,b\n" + text)
    processes = [start("master", "--listen", address)]
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port + 1}/health", timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        processes += [start("server", "--master", address), start("worker", "--master", address)]
        estimator = seraphim.GradientBoostingClassifier(iterations=5)
        options = {"cluster": address, "model": tmp_path / "there", "servers": 1, "workers": 1}
        estimator.fit(tmp_path / "data.csv", "label", **options)
        with pytest.raises(seraphim.SeraphimError, match="overwrite|exists"):
            estimator.fit(tmp_path / "data.csv", "label", **options)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    here = seraphim.GradientBoostingClassifier(iterations=5).fit(tmp_path / "data.csv", "label")
    here.save(tmp_path / "here")
    for file in (tmp_path / "here").glob("*.safetensors"):
        assert file.read_bytes() == (tmp_path / "there" / file.name).read_bytes()
    with pytest.raises(ValueError, match="a cluster reads files"):
        estimator.fit(np.ones((3, 1)), [0, 1, 0], cluster=address)
