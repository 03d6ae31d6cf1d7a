"""Matrices of parameters for loops of a program's own: in this process, on servers of this machine, or at a cluster."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from typing import Any, Callable, Protocol, Sequence, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seraphim import _native
from seraphim.errors import DataError, SettingError, StorageError

T = TypeVar("T")

ELEMENTS = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "uint32": "u32"}
# Rows of a matrix whose number is not known.
UNKNOWN_ROWS = 2**63
PARTITIONS = 16

# Push rules with the defaults of their settings.
OPTIMIZER = {"schedule": {"kind": "constant"}, "l1": 0.0, "l2": 0.0}
RULES: dict[str, dict[str, Any]] = {
    "add": {},
    "assign": {},
    "min": {},
    "max": {},
    "sgd": {"rate": 0.1, **OPTIMIZER},
    "momentum": {"rate": 0.1, "momentum": 0.9, **OPTIMIZER},
    "ada_grad": {"rate": 0.1, "epsilon": 1e-6, **OPTIMIZER},
    "rms_prop": {"rate": 0.01, "decay": 0.9, "epsilon": 1e-6, **OPTIMIZER},
    "adam": {"rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, **OPTIMIZER},
    "ada_delta": {"decay": 0.95, "epsilon": 1e-6, "l1": 0.0, "l2": 0.0},
    "ftrl_proximal": {"alpha": 0.1, "beta": 1.0, "l1": 0.0, "l2": 0.0},
}


def spec_of(
    name: str,
    rows: int | None,
    columns: int,
    dtype: Any,
    rule: str,
    consistency: str,
    initial: Any,
    axis: str,
    seed: int,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """The declared structure of a matrix."""
    element = ELEMENTS.get(np.dtype(dtype).name)
    if element is None:
        raise SettingError(f"dtype of the matrix {name!r} is {dtype}, expected one of {', '.join(ELEMENTS)}")
    if rule not in RULES:
        raise SettingError(f"rule of the matrix {name!r} is {rule!r}, expected one of {', '.join(RULES)}")
    for setting in settings:
        if setting not in RULES[rule]:
            known = ", ".join(RULES[rule]) or "none"
            raise SettingError(f"the rule {rule} has no setting {setting!r}; it has {known}")
    if axis not in ("row", "column"):
        raise SettingError(f"axis of the matrix {name!r} is {axis!r}, expected 'row' or 'column'")
    is_dense = rows is not None
    if axis == "column" and rows is None:
        raise SettingError(f"the matrix {name!r} has long rows (axis='column'), so their number must be given")
    return {
        "name": name,
        "element": element,
        "rows": UNKNOWN_ROWS if rows is None else rows,
        "columns": columns,
        "axis": axis,
        "storage": "dense" if is_dense else "sparse",
        "partitioner": {"kind": "range" if is_dense else "hash", "partition_count": _partitions(rows, columns, axis)},
        "initializer": _initializer(initial),
        "rule": {"rule": rule, **RULES[rule], **settings},
        "consistency": _consistency(consistency),
        "seed": seed,
    }


def _partitions(rows: int | None, columns: int, axis: str) -> int:
    keys = columns if axis == "column" else rows
    return PARTITIONS if keys is None else max(1, min(PARTITIONS, keys))


def _initializer(initial: Any) -> dict[str, Any]:
    if isinstance(initial, (int, float)):
        return {"kind": "zero"} if initial == 0 else {"kind": "constant", "value": float(initial)}
    if isinstance(initial, dict):
        return initial
    raise SettingError(f"initial is {initial!r}, expected a number, or as {{'kind': 'normal', 'deviation': 0.01}}")


def _consistency(text: str) -> Any:
    kind, _, bound = text.partition(":")
    if kind == "ssp" and bound.isdigit():
        return {"ssp": {"staleness": int(bound)}}
    if text in ("bsp", "asp"):
        return text
    raise SettingError(f"consistency is {text!r}, expected bsp, ssp:N or asp")


class _Access(Protocol):
    def pull(self, matrix: int, row: int, keys: NDArray[np.uint64]) -> NDArray[Any]: ...
    def push(self, matrix: int, row: int, keys: NDArray[np.uint64], values: NDArray[Any]) -> None: ...


class Matrix:
    """A matrix as a task or a session reaches it."""

    def __init__(self, access: _Access, number: int, spec: dict[str, Any]) -> None:
        self._access, self._number, self._spec = access, number, spec
        self.name: str = spec["name"]
        self._is_long = spec["axis"] == "column"
        self._width = 1 if self._is_long else spec["columns"]
        self.dtype = np.dtype(next(name for name, element in ELEMENTS.items() if element == spec["element"]))

    def pull(self, keys: ArrayLike | None = None, *, row: int = 0) -> NDArray[Any]:
        """The rows of these keys, in their order: an array of keys x columns, or one number a key if there is one column.

        Of a matrix of long rows (``axis="column"``), the numbers of row ``row`` at these columns. Without keys: all.
        """
        wanted = self._keys(keys)
        if _is_ascending(wanted):
            return self._shaped(self._access.pull(self._number, row, wanted))
        distinct, places = np.unique(wanted, return_inverse=True)
        return self._shaped(self._access.pull(self._number, row, distinct))[places]

    def push(self, keys: ArrayLike | None, values: ArrayLike, *, row: int = 0) -> None:
        """Sends a change of the rows of these keys, which the push rule of the matrix merges. Each key is there once."""
        keys, change = self._sorted(keys, values)
        self._access.push(self._number, row, keys, change)

    def _sorted(self, keys: ArrayLike | None, values: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        wanted = self._keys(keys)
        change = np.ascontiguousarray(values, dtype=self.dtype)
        if change.size != wanted.size * self._width:
            raise DataError(
                f"{wanted.size} keys of {self.name!r} have {wanted.size * self._width} values, and {change.size} are given"
            )
        if _is_ascending(wanted):
            return wanted, change
        order = np.argsort(wanted, kind="stable")
        wanted = wanted[order]
        if not _is_ascending(wanted):
            raise DataError(f"a key of {self.name!r} is pushed twice: sum the changes of equal keys before")
        return wanted, np.ascontiguousarray(change.reshape(wanted.size, self._width)[order])

    def _keys(self, keys: ArrayLike | None) -> NDArray[np.uint64]:
        if keys is None:
            count = self._spec["columns"] if self._is_long else self._spec["rows"]
            if count == UNKNOWN_ROWS:
                raise DataError(f"the number of rows of {self.name!r} is not known: name the keys")
            return np.arange(count, dtype=np.uint64)
        wanted = np.asarray(keys)
        if wanted.dtype.kind not in "iu" and wanted.size:
            raise DataError(f"keys of {self.name!r} are whole numbers, not {wanted.dtype}")
        if wanted.dtype.kind == "i" and wanted.size and int(wanted.min()) < 0:
            raise DataError(f"keys of {self.name!r} are at least 0, and {wanted.min()} is among them")
        return np.ascontiguousarray(wanted.ravel(), dtype=np.uint64)

    def _shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self._width == 1 else values.reshape(-1, self._width)


def _is_ascending(keys: NDArray[np.uint64]) -> bool:
    return bool((keys[1:] > keys[:-1]).all())


class Task:
    """A task of a loop: its number, its clock, and the matrices. One thread uses it."""

    def __init__(self, agent: _native.TaskAgent, number: int, count: int, specs: list[dict[str, Any]]) -> None:
        self._agent, self.number, self.count = agent, number, count
        self._specs = {spec["name"]: (at, spec) for at, spec in enumerate(specs)}

    def __getitem__(self, name: str) -> Matrix:
        if name not in self._specs:
            raise SettingError(f"there is no matrix {name!r}; there are {', '.join(self._specs) or 'none'}")
        return Matrix(self._agent, *self._specs[name])

    @property
    def clock(self) -> int:
        """The number of ticks."""
        return self._agent.clock()

    def tick(self) -> None:
        """Ends a step."""
        self._agent.tick()

    def barrier(self) -> None:
        """Waits for all tasks; every push before is visible to all then."""
        self._agent.barrier()

    def all_reduce(self, values: ArrayLike) -> NDArray[np.float64]:
        """The sums of these numbers over all tasks, which also wait for each other."""
        numbers = np.asarray(values, dtype=np.float64)
        return self._agent.all_reduce(np.ascontiguousarray(numbers.ravel())).reshape(numbers.shape)

    def pull_function(self, matrix: str, name: str, rows: Sequence[int] = (), argument: Any = None) -> Any:
        """The answer of a function that reads rows of a matrix where they are, as ``seraphim functions`` lists them."""
        at, _ = self._specs[matrix]
        return json.loads(self._agent.pull_function(at, name, list(rows), json.dumps(argument)))

    def push_function(
        self, matrix: str, name: str, rows: Sequence[int] = (), into: Sequence[int] = (), argument: Any = None
    ) -> None:
        """Runs a function that changes rows of a matrix where they are."""
        at, _ = self._specs[matrix]
        self._agent.push_function(at, name, list(rows), list(into), json.dumps(argument))


class Cluster:
    """Matrices and tasks of a loop: parameters in this process, or on ``servers`` processes of this machine.

    Examples
    --------
    >>> cluster = Cluster(tasks=2)
    >>> cluster.matrix("w", rows=3)
    >>> def count(task):
    ...     task["w"].push([0, 1, 2], [1.0, 2.0, 3.0])
    ...     task.tick()
    ...     return task["w"].pull().tolist()
    >>> cluster.run(count)
    [[2.0, 4.0, 6.0], [2.0, 4.0, 6.0]]
    """

    def __init__(self, *, servers: int = 0, tasks: int = 1) -> None:
        if tasks < 1 or servers < 0:
            raise SettingError(f"tasks={tasks}, servers={servers}: there is at least one task, and no fewer servers than 0")
        self.servers, self.tasks = servers, tasks
        self._specs: list[dict[str, Any]] = []
        self._store: _native.Store | None = None

    def matrix(
        self,
        name: str,
        rows: int | None = None,
        columns: int = 1,
        *,
        dtype: Any = "float32",
        rule: str = "add",
        consistency: str = "bsp",
        initial: Any = 0,
        axis: str = "row",
        seed: int = 1,
        **settings: Any,
    ) -> None:
        """Declares a matrix, before the first task runs.

        Parameters
        ----------
        rows : int, optional
            Keys are below it, and all rows exist. Without it any key below 2^63 may be pushed.
        rule : str
            How a push merges: ``add``, ``assign``, ``min``, ``max``, or an optimizer that takes gradients, such as ``sgd`` or
            ``ftrl_proximal``, with its settings as keywords.
        consistency : str
            What a pull may miss: ``bsp``, ``ssp:N`` or ``asp``.
        initial : number or dict
            The first value of each element, or as ``{"kind": "normal", "deviation": 0.01}``.
        axis : str
            ``row``: each key is a row; ``column``: few long rows, whose keys are columns, as functions need them.
        """
        if self._store is not None:
            raise SettingError(f"the matrix {name!r} comes too late: declare matrices before the first task")
        spec = spec_of(name, rows, columns, dtype, rule, consistency, initial, axis, seed, settings)
        self._specs.append(spec)

    def task(self, number: int) -> Task:
        """The task of this number, for a thread of your own."""
        if self._store is None:
            self._store = _native.Store([json.dumps(spec) for spec in self._specs], self.tasks, self.servers)
        return Task(self._store.agent(number), number, self.tasks, self._specs)

    def run(self, work: Callable[[Task], T]) -> list[T]:
        """Runs ``work`` once for each task, side by side in threads, and returns what they return.

        If one fails, the others end at their next wait, and its exception is raised.
        """
        tasks = [self.task(number) for number in range(self.tasks)]
        results: list[Any] = [None] * self.tasks
        failures: list[BaseException] = []

        def one(task: Task) -> None:
            try:
                results[task.number] = work(task)
                task._agent.finish()
            except BaseException as error:  # noqa: BLE001 it is raised below
                failures.append(error)
                assert self._store is not None
                self._store.stop(f"task {task.number} failed: {error}")

        threads = [threading.Thread(target=one, args=(task,), daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)
        except KeyboardInterrupt:
            assert self._store is not None
            self._store.stop("interrupted")
            raise
        if failures:
            raise failures[0]
        return results


class Session:
    """Matrices at the servers of a parameter service or a cluster, which other processes may share. It has no clocks: a pull
    sees every push that was answered before. It ends with the process that opened it."""

    def __init__(self, address: str, token: str | bytes = b"", *, name: str = "python", session: int | None = None) -> None:
        secret = token.encode() if isinstance(token, str) else token
        self.address = address
        self._session = _native.Session(address, secret, name, session)

    @property
    def number(self) -> int:
        """The number by which other processes join: ``seraphim.connect(address, session=number)``."""
        return self._session.job()

    def matrix(
        self,
        name: str,
        rows: int | None = None,
        columns: int = 1,
        *,
        dtype: Any = "float32",
        rule: str = "add",
        initial: Any = 0,
        axis: str = "row",
        seed: int = 1,
        **settings: Any,
    ) -> SharedMatrix:
        """Creates a matrix, or finds the one of this name and declaration; see `Cluster.matrix`."""
        spec = spec_of(name, rows, columns, dtype, rule, "asp", initial, axis, seed, settings)
        return SharedMatrix(self._session, self._session.create_matrix(json.dumps(spec)), spec)


class SharedMatrix(Matrix):
    """A matrix of a session."""

    _access: _native.Session

    def push_once(self, keys: ArrayLike, values: ArrayLike, *, token: int, part: int, attempt: int | None = None) -> bool:
        """A push that counts once, however often a scheduler runs the task.

        Of all attempts at a ``part`` of a ``token``, the one that commits first counts. Tokens of a matrix increase, one for each
        evaluation; the same share of the data has the same part in every attempt. Returns whether this attempt counts.
        """
        keys, change = self._sorted(keys, values)
        own = int.from_bytes(os.urandom(8), "little") if attempt is None else attempt
        return self._access.push_once(self._number, keys, change, (token, part, own))

    def close_token(self, token: int) -> None:
        """Refuses all later attempts of this token and those below it."""
        self._access.close_token(self._number, token)


def connect(address: str, token: str | bytes = b"", *, name: str = "python", session: int | None = None) -> Session:
    """Opens a session at a master (``host:port``), or joins session number ``session`` of another process."""
    return Session(address, token, name=name, session=session)


class Service:
    """A parameter service of this machine: ``servers`` processes that end with this one."""

    def __init__(self, *, servers: int = 1, listen: str = "127.0.0.1:0") -> None:
        command = [sys.executable, "-m", "seraphim", "serve-parameters", "--json", "--listen", listen]
        command += ["--http", "127.0.0.1:0", "--servers", str(servers)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            if line.startswith("}"):
                break
        else:
            code = self._process.wait()
            raise StorageError(f"the parameter service did not start (exit code {code}); its output is above")
        self.address: str = json.loads("".join(lines))["address"]
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the servers."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
