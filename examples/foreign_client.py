#!/usr/bin/env python3
"""A client of the parameter service (docs/parameter-service.md) in plain Python, after docs/protocol.md.

    seraphim serve-parameters --servers 2
    python3 examples/foreign_client.py 127.0.0.1:7070 [--token-file FILE]

Opens a session, makes matrices, pulls, pushes, pipelines, sends a batch, stages a push by two attempts, calls functions, closes,
and checks every value on the way. Needs nothing but the standard library.
"""
import argparse
import json
import math
import socket
import struct
import sys
from array import array
from collections import namedtuple

# magic, version, kind, flags, job, request, clock, task, matrix, lengths of meta, keys, values, index, CRC of the body
HEADER = struct.Struct("<IHHIIQQIIIIIII")
MAGIC = int.from_bytes(b"SRPH", "little")
VERSION = 2
KINDS = ("Hello Welcome OpenJob CloseJob Pull Pulled Push Tick Leave Join Joined Barrier Released Export ExportPage Import "
         "KeepRows RestoreRows Stats StatsReply Done Fault Control OpenSession SessionMap CreateMatrix DropMatrix AskMap "
         "RenewSession CloseSession AddMatrix PushStaged Commit Committed CloseToken Batch PullFunction PulledFunction "
         "PushFunction TryFunction CommitFunction DropRows ScanRows CheckpointSession").split()
CODES = {name: code for code, name in enumerate(KINDS, 1)}
ELEMENTS = ["f32", "f64", "i64"]
ARRAYS = {"f32": "f", "f64": "d", "i64": "q"}
TOOL, SESSION = 1, 3
NO_WAIT = bytes(8)  # how long who asks still waits, in ms: not said
Frame = namedtuple("Frame", "kind job request clock index meta values")


class Fault(Exception):
    """What the service refused, with the kind that a program decides by."""

    def __init__(self, fault):
        super().__init__(f"refused ({fault['kind']}): {fault['text']}")
        self.kind = fault["kind"]


def crc_table():
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        yield i


CRC_TABLE = list(crc_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def mix64(key):
    mask = (1 << 64) - 1
    x = (key + 0x9E3779B97F4A7C15) & mask
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
    return x ^ x >> 31


def padded(data):
    return data + bytes(-len(data) % 8)


def frame(kind, request, job=0, clock=0, task=0, matrix=0, index=0, meta=b"", keys=(), values=None):
    """The bytes of a frame; values are an array of type f, d or q."""
    element = 0 if values is None else "fdq".index(values.typecode)
    body = padded(meta) + array("Q", keys).tobytes() + padded(b"" if values is None else values.tobytes())
    lengths = len(meta), len(keys), 0 if values is None else len(values)
    head = HEADER.pack(MAGIC, VERSION, CODES[kind], 1 | element << 4, job, request, clock, task, matrix, *lengths, index,
                       crc32c(body))
    return head + struct.pack("<I", crc32c(head)) + body


def read_frame(read):
    """The next frame; `read(n)` gives n bytes."""
    head = read(64)
    magic, version, kind, flags, job, request, clock, _, _, metas, keys, values, index, body_sum = HEADER.unpack(head[:60])
    if magic != MAGIC or version != VERSION or crc32c(head[:60]) != int.from_bytes(head[60:], "little"):
        raise ConnectionError(f"what answers is no parameter service of version {VERSION}, or the frame is damaged")
    out = array(ARRAYS[ELEMENTS[flags >> 4 & 3]])
    size = metas + -metas % 8 + keys * 8
    body = read(size + (values * out.itemsize + 7) // 8 * 8)
    if flags & 1 and crc32c(body) != body_sum:
        raise ConnectionError("the body of a frame is damaged")
    out.frombytes(body[size:size + values * out.itemsize])
    return Frame(KINDS[kind - 1], job, request, clock, index, body[:metas], out)


def call(name, reads=(), writes=(), argument=b""):
    """A function with the rows that it reads and writes; numbers of the argument are packed one behind the other."""
    rows = [*reads, *writes]
    lengths = struct.pack("<IIIIQ", 1, len(name), len(reads), len(writes), len(argument))
    return lengths + name.encode() + struct.pack(f"<{len(rows)}I", *rows) + argument


def parts_of(meta):
    """What a PulledFunction has for each partition."""
    parts, at = {}, 24
    for _ in range(struct.unpack_from("<I", meta, 16)[0]):
        partition, _, length = struct.unpack_from("<IIQ", meta, at)
        parts[partition] = meta[at + 16:at + 16 + length]
        at += 16 + length
    return parts


def sum_of(parts):
    """The sum whose parts these are: of bare terms, of nodes (level, index, sum), of bare terms."""
    terms = []
    for part in parts.values():
        at = 16
        for item in (struct.Struct("<d"), struct.Struct("<IQd"), struct.Struct("<d")):
            count = struct.unpack_from("<Q", part, at)[0]
            terms += [item.unpack_from(part, at + 8 + i * item.size)[-1] for i in range(count)]
            at += 8 + count * item.size
    return math.fsum(terms)


class Connection:
    """To the master, or to one lane of a server. Answers come in the order of requests."""

    def __init__(self, address, token, role, job=0, lane=0):
        host, port = address.removeprefix("tcp:").rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.request = 0
        self.ask("Hello", job=job, meta=struct.pack("<HHI", role, lane, len(token)) + token)

    def read(self, count):
        data = self.file.read(count)
        if len(data) != count:
            raise ConnectionError("the service closed the connection")
        return data

    def send(self, kind, is_answered=True, **fields):
        self.request += 1
        self.socket.sendall(frame(kind, self.request if is_answered else 0, **fields))
        return self.request

    def receive(self):
        answer = read_frame(self.read)
        if answer.kind == "Fault":
            raise Fault(json.loads(answer.meta))
        return answer

    def ask(self, kind, **fields):
        self.send(kind, **fields)
        return self.receive()

    def say(self, kind, job=0, **body):
        """A request whose meta is JSON, and its answer."""
        text = {"request": self.request + 1, **({"job": job} if job else {}), **body}
        return self.ask(kind, job=job, meta=json.dumps(text).encode())

    def batch(self, requests):
        """Requests as pairs of kind and fields, in one frame; the frames of the answers."""
        frames = b"".join(frame(kind, i, **fields) for i, (kind, fields) in enumerate(requests, 1))
        rest = memoryview(self.ask("Batch", meta=frames).meta)
        answers = []
        while rest:
            def read(count):
                nonlocal rest
                data, rest = rest[:count], rest[count:]
                return bytes(data)
            answers.append(read_frame(read))
        return answers


class Session:
    def __init__(self, address, token, name):
        self.token = token
        self.master = Connection(address, token, TOOL)
        self.map = json.loads(self.master.say("OpenSession", name=name).meta)
        self.job = self.map["job"]
        self.lanes = {}

    def lane(self, i):
        if i not in self.lanes:
            lane = self.map["lanes"][i]
            self.lanes[i] = Connection(lane["addresses"][0], self.token, SESSION, self.job, lane["lane"])
        return self.lanes[i]

    def create(self, name, rows, columns, element, storage, partitioner, axis="row"):
        spec = dict(name=name, element=element, rows=rows, columns=columns, axis=axis, storage=storage,
                    partitioner=partitioner, initializer={"kind": "zero"}, rule={"rule": "add"}, consistency="asp", seed=1)
        self.map = json.loads(self.master.say("CreateMatrix", self.job, spec=spec).meta)
        return Matrix(self, next(one for one in self.map["matrices"] if one["spec"]["name"] == name))

    def drop(self, matrix):
        self.master.ask("DropMatrix", job=self.job, matrix=matrix.id)

    def renew(self):
        self.master.ask("RenewSession", job=self.job)

    def close(self):
        self.master.ask("CloseSession", job=self.job)


class Matrix:
    def __init__(self, session, entry):
        self.session, self.id, self.owners, self.spec = session, entry["matrix"], entry["owners"], entry["spec"]
        by_row = self.spec["axis"] == "row"
        # By row a key is a row, with all its columns; by column it is a column of one row.
        self.bound, self.columns = (self.spec["rows"], self.spec["columns"]) if by_row else (self.spec["columns"], 1)
        self.type = ARRAYS[self.spec["element"]]

    def partition_of(self, key):
        count = len(self.owners)
        if self.spec["partitioner"]["kind"] == "hash":
            return (mix64(key) >> 32) * count >> 32
        starts = [i * self.bound // count for i in range(count)]
        return max(i for i in range(count) if starts[i] <= key)

    def requests(self, keys, values=None, row=0):
        """By lane: the keys in the order in which they go there, and the fields of a request for them. By column: of a row."""
        lanes = {}
        for key in sorted(set(keys)):
            partition = self.partition_of(key)
            lanes.setdefault(self.owners[partition], {}).setdefault(partition, []).append(key)
        for lane, runs in sorted(lanes.items()):
            order = [key for partition in sorted(runs) for key in runs[partition]]
            meta = struct.pack("<IIII", row, 0, len(runs), 0)
            meta += b"".join(struct.pack("<II", partition, len(runs[partition])) for partition in sorted(runs))
            if values is None:
                meta = NO_WAIT + meta
            fields = dict(job=self.session.job, matrix=self.id, meta=meta, keys=order)
            if values is not None:
                fields["values"] = array(self.type, [value for key in order for value in values[key]])
            yield lane, order, fields

    def rows(self, order, values):
        return {key: list(values[i * self.columns:(i + 1) * self.columns]) for i, key in enumerate(order)}

    def pull(self, keys, row=0):
        """The rows of the keys. All lanes are asked before the first answers."""
        asked = [(lane, order, self.session.lane(lane).send("Pull", **fields)) for lane, order, fields in
                 self.requests(keys, row=row)]
        found = {}
        for lane, order, _ in asked:
            found.update(self.rows(order, self.session.lane(lane).receive().values))
        return found

    def push(self, rows, is_answered=True, row=0):
        """Adds rows. Without an answer: what comes later on the connection sees it, a refusal comes as a Fault."""
        lanes = []
        for lane, _, fields in self.requests(rows, rows, row):
            self.session.lane(lane).send("Push", is_answered, **fields)
            lanes.append(lane)
        for lane in lanes if is_answered else []:
            self.session.lane(lane).receive()

    def stage(self, token, part, attempt, rows):
        """Stages rows on their lanes, one chunk each; how many chunks each lane of the matrix has."""
        chunks = dict.fromkeys(self.owners, 0)
        for lane, _, fields in self.requests(rows, rows):
            fields["meta"] = struct.pack("<Q", attempt) + fields["meta"]
            self.session.lane(lane).ask("PushStaged", clock=token, task=part, index=chunks[lane], **fields)
            chunks[lane] += 1
        return chunks

    def commit(self, token, part, attempt, chunks):
        """Commits on all lanes; the attempt that counts on each."""
        fields = dict(job=self.session.job, matrix=self.id, clock=token, task=part, meta=struct.pack("<Q", attempt))
        answers = {lane: self.session.lane(lane).ask("Commit", index=count, **fields) for lane, count in chunks.items()}
        return {lane: struct.unpack("<Q", answer.meta)[0] for lane, answer in answers.items()}

    def ask_all(self, kind, **fields):
        """Asks all lanes of the matrix at once; their answers by lane. The first refusal is raised when all have answered."""
        lanes, answers, faults = sorted(set(self.owners)), {}, []
        for lane in lanes:
            self.session.lane(lane).send(kind, job=self.session.job, matrix=self.id, **fields)
        for lane in lanes:
            try:
                answers[lane] = self.session.lane(lane).receive()
            except Fault as fault:
                faults.append(fault)
        if faults:
            raise faults[0]
        return answers

    def pull_function(self, called):
        """The parts of the answer by partition; merging them is the business of who asks."""
        answers = self.ask_all("PullFunction", meta=NO_WAIT + called).values()
        return {partition: part for answer in answers for partition, part in parts_of(answer.meta).items()}

    def push_functions(self, *calls, tries_first=False):
        """Carries functions out in one visit. With a try before, nothing changes anywhere when one lane cannot."""
        for kind in ["TryFunction"] * tries_first + ["PushFunction"]:
            self.ask_all(kind, meta=struct.pack("<II", len(calls), 0) + b"".join(calls))

    def commit_functions(self, token, part, attempt, *calls):
        """The same once for a part of a token; the attempt that counts on each lane."""
        meta = struct.pack("<QII", attempt, len(calls), 0) + b"".join(calls)
        answers = self.ask_all("CommitFunction", clock=token, task=part, meta=meta)
        return {lane: struct.unpack("<Q", answer.meta)[0] for lane, answer in answers.items()}

    def close_token(self, token):
        for lane in set(self.owners):
            self.session.lane(lane).ask("CloseToken", job=self.session.job, matrix=self.id, clock=token)


def check(what, actual, expected):
    if actual != expected:
        raise SystemExit(f"{what}: got {actual!r}, expected {expected!r}")
    print(f"ok: {what}")


def refused(what, kind, call):
    try:
        call()
    except Fault as fault:
        check(what, fault.kind, kind)
    else:
        raise SystemExit(f"{what}: it was granted")


def tour_of_functions(session):
    """Functions that run at the lanes, on rows of a matrix that is partitioned by column."""
    width, lanes = 1000, len(session.map["lanes"])
    vectors = session.create("vectors", 3, width, "f64", "dense", {"kind": "range", "partition_count": 2 * lanes}, "column")
    vectors.push({i: [i - 10.5] for i in range(width)})
    double = call("scalar_mul", [0], [1], struct.pack("<d", 2.0))
    vectors.push_functions(double, call("set", [], [2], struct.pack("<d", 1.0)))
    check("push functions change rows where they are", vectors.pull([0, width - 1], row=1), {0: [-21.0], width - 1: [1977.0]})
    sums = [sum_of(vectors.pull_function(call("dot", [row, 2]))) for row in (0, 1)]
    check("a sum is that of the parts of all lanes", sums, [489000.0, 978000.0])
    count = vectors.pull_function(call("count_non_zero", [0])).values()
    check("each partition has a part", sum(struct.unpack("<Q", part)[0] for part in count), width)

    # Only the first columns are below 0: the lanes of the others could take the logarithm.
    logarithm = call("log", [0], [0])
    before = vectors.pull(range(width))
    refused("a function that cannot be carried out is refused", "function",
            lambda: vectors.push_functions(double, logarithm, tries_first=True))
    check("one that was tried first has changed nothing anywhere", vectors.pull(range(width)), before)

    # Two attempts at one part again: the function is carried out once, whoever asks, and however often.
    first = vectors.commit_functions(1, 0, 7, double, call("copy", [1], [0]))
    again = vectors.commit_functions(1, 0, 8, double, call("copy", [1], [0]))
    check("a function that is committed counts once", set(first.values()) | set(again.values()), {7})
    check("and has been carried out once", vectors.pull([30]), {30: [39.0]})
    refused("a commit that cannot be carried out is refused", "function", lambda: vectors.commit_functions(1, 1, 9, logarithm))
    vectors.close_token(1)

    line = session.lane(vectors.owners[0])
    to = dict(job=session.job, matrix=vectors.id)
    answers = line.batch([("PushFunction", dict(meta=struct.pack("<II", 1, 0) + call("negate", [2], [2]), **to)),
                          ("PullFunction", dict(meta=NO_WAIT + call("sum", [2]), **to))])
    check("functions go into batches", [answer.kind for answer in answers], ["Done", "PulledFunction"])
    own = sum(end - start for start, end in (struct.unpack_from("<QQ", part) for part in parts_of(answers[1].meta).values()))
    check("and are done in order", sum_of(parts_of(answers[1].meta)), -float(own))
    session.drop(vectors)


def tour(address, token):
    session = Session(address, token, "tour")
    lanes = len(session.map["lanes"])
    dense = session.create("dense", 100, 1, "f64", "dense", {"kind": "range", "partition_count": 4 * lanes})
    sparse = session.create("sparse", 1 << 63, 2, "f32", "sparse", {"kind": "hash", "partition_count": 4 * lanes})
    print(f"session {session.job} on {lanes} lanes")

    dense.push({key: [key / 2] for key in range(100)})
    check("a dense matrix holds what was pushed", dense.pull(range(100)), {key: [key / 2] for key in range(100)})
    keys = [7, 1 << 40, 99, (1 << 62) + 3, 12345678901]
    for _ in range(3):
        sparse.push({key: [1.0, -0.5] for key in keys}, is_answered=False)
    check("a sparse matrix sums what needs no answer", sparse.pull(keys + [5]),
          {**{key: [3.0, -1.5] for key in keys}, 5: [0.0, 0.0]})

    # Pipelined: ten requests are on their way before the first answer is read.
    lane, order, fields = next(dense.requests(range(100)))
    line = session.lane(lane)
    sent = [line.send("Pull", **fields) for _ in range(10)]
    answers = [line.receive() for _ in sent]
    check("answers come in the order of requests", [answer.request for answer in answers], sent)

    # Several requests in one frame: a push that wants no answer has none.
    lane, order, add = next(dense.requests(range(100), {key: [1.0] for key in range(100)}))
    pull = next(dense.requests(range(100)))[2]
    answers = line.batch([("Pull", pull), ("Push", add), ("Pull", pull)])
    check("a batch is answered in order", [answer.kind for answer in answers], ["Pulled", "Done", "Pulled"])
    check("a batch is done in order", [b - a for a, b in zip(answers[0].values, answers[2].values)], [1.0] * len(order))

    # Two attempts at one part: the first commit counts, on every lane.
    before = sparse.pull(keys)
    slow = sparse.stage(1, 0, 7, {key: [10.0, 1.0] for key in keys})
    fast = sparse.stage(1, 0, 8, {key: [10.0, 1.0] for key in keys})
    other = sparse.stage(1, 1, 9, {keys[0]: [0.5, 0.0]})
    check("what is staged is not seen", sparse.pull(keys), before)
    check("the first commit counts", set(sparse.commit(1, 0, 8, fast).values()), {8})
    check("a later one is told so", set(sparse.commit(1, 0, 7, slow).values()), {8})
    check("a repeat of the first changes nothing", set(sparse.commit(1, 0, 8, fast).values()), {8})
    sparse.commit(1, 1, 9, other)
    after = {key: [13.0, -0.5] for key in keys}
    after[keys[0]] = [13.5, -0.5]
    check("each part counts once", sparse.pull(keys), after)
    sparse.close_token(1)
    refused("a closed token refuses late attempts", "token_closed", lambda: sparse.stage(1, 2, 10, {7: [1.0, 1.0]}))

    tour_of_functions(session)

    session.drop(sparse)
    refused("a dropped matrix takes no push", "not_found", lambda: sparse.push({7: [1.0, 1.0]}))
    check("a dropped matrix is not in the map",
          [one["matrix"] for one in json.loads(session.master.ask("AskMap", job=session.job).meta)["matrices"]], [dense.id])
    session.close()
    refused("a closed session is over at the master", "stopped", session.renew)
    refused("a closed session is over at the servers", "stopped", lambda: dense.pull([1]))


def main():
    parser = argparse.ArgumentParser(description="Walks through the parameter service and checks every value.")
    parser.add_argument("address", help="what `seraphim serve-parameters` says, HOST:PORT")
    parser.add_argument("--token-file", help="the secret of the service")
    arguments = parser.parse_args()
    token = b""
    if arguments.token_file:
        with open(arguments.token_file, "rb") as file:
            token = file.read().strip()
    try:
        tour(arguments.address, token)
    except (Fault, OSError) as error:
        sys.exit(f"error: {error}")
    print("all is as it should be")


if __name__ == "__main__":
    main()
