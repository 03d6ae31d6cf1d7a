"""Files of every type, encoding, page version and codec that pyarrow writes: the seeds of the Parquet reader."""
import datetime, decimal, sys, os
import pyarrow as pa, pyarrow.parquet as pq

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
n = 5
D = decimal.Decimal
epoch = datetime.datetime(1970, 1, 1)

def column(kind, values):
    values = [None if r == 3 else v for r, v in enumerate(values)]
    return pa.array(values, type=kind)

rows = range(1, n + 1)
times = [epoch + datetime.timedelta(seconds=r * 1000 + .5) for r in rows]
whole = [epoch + datetime.timedelta(seconds=r * 1000) for r in rows]
columns = {
    "label": pa.array([r % 2 for r in rows], pa.int8()),
    "bool": column(pa.bool_(), [r % 2 == 0 for r in rows]),
    "f16": pa.array([None if r == 4 else r + .5 for r in rows], pa.float16()),
    "f32": column(pa.float32(), [r + .5 for r in rows]),
    "f64": column(pa.float64(), [r + .5 for r in rows]),
    "d9": column(pa.decimal128(9, 2), [D(r) + D("0.25") for r in rows]),
    "d18": column(pa.decimal128(18, 2), [D(r) + D("0.25") for r in rows]),
    "d38": column(pa.decimal128(38, 10), [D(r) + D("0.25") for r in rows]),
    "d76": column(pa.decimal256(60, 10), [D(r) + D("0.25") for r in rows]),
    "date32": column(pa.date32(), [datetime.date(1970, 1, 1) + datetime.timedelta(days=r) for r in rows]),
    "ts_s": column(pa.timestamp("s"), whole),
    "ts_ms": column(pa.timestamp("ms"), times),
    "ts_us": column(pa.timestamp("us", "UTC"), times),
    "ts_ns": column(pa.timestamp("ns"), times),
    "time_ms": column(pa.time32("ms"), [datetime.time(0, 0, r, 500000) for r in rows]),
    "time_us": column(pa.time64("us"), [datetime.time(0, 0, r, 500000) for r in rows]),
    "null": pa.nulls(n),
    "string": column(pa.string(), [f"word {r % 2}" for r in rows]),
    "binary": column(pa.binary(), [b"bytes %d" % r for r in rows]),
    "large": column(pa.large_string(), [f"large {r}" for r in rows]),
    "category": column(pa.string(), [f"kind {r % 2}" for r in rows]).dictionary_encode(),
}
for bits in (8, 16, 32, 64):
    columns[f"i{bits}"] = column(pa.int32() if bits == 0 else getattr(pa, f"int{bits}")(), [-r for r in rows])
    columns[f"u{bits}"] = column(getattr(pa, f"uint{bits}")(), [r + 100 for r in rows])
table = pa.table(columns)

def write(name, table=table, **way):
    way.setdefault("compression", "none")
    pq.write_table(table, f"{out}/{name}", **way)

for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd"):
    version = "2.0" if codec in ("gzip", "lz4", "none") else "1.0"
    write(f"types_{codec}", compression=codec, data_page_version=version, write_page_checksum=codec != "none",
          use_dictionary=codec in ("none", "zstd", "brotli"))
write("types_int96", table=table.drop_columns(["ts_s", "ts_ms", "ts_us", "date32", "time_ms", "time_us"]), use_deprecated_int96_timestamps=True)
encodings = {name: "PLAIN" for name in columns}
encodings |= {"bool": "RLE", "i8": "DELTA_BINARY_PACKED", "i32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED",
              "u16": "DELTA_BINARY_PACKED", "u64": "DELTA_BINARY_PACKED", "ts_us": "DELTA_BINARY_PACKED",
              "string": "DELTA_BYTE_ARRAY", "binary": "DELTA_LENGTH_BYTE_ARRAY", "large": "DELTA_BYTE_ARRAY",
              "category": "DELTA_LENGTH_BYTE_ARRAY", "d38": "DELTA_BYTE_ARRAY", "f16": "BYTE_STREAM_SPLIT",
              "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT", "i16": "BYTE_STREAM_SPLIT", "u32": "BYTE_STREAM_SPLIT",
              "d76": "BYTE_STREAM_SPLIT"}
for version in ("1.0", "2.0"):
    write(f"types_delta_v{version[0]}", use_dictionary=False, column_encoding=encodings, data_page_version=version,
          write_page_checksum=True)

label = pa.array([1, 0, 1, 0, 1], pa.int8())
vector = pa.struct([pa.field("type", pa.int8(), False), ("size", pa.int32()), ("indices", pa.list_(pa.field("element", pa.int32(), False))),
                    ("values", pa.list_(pa.field("element", pa.float64(), False)))])
dense = lambda *v: {"type": 1, "size": None, "indices": None, "values": list(v)}
sparse = lambda size, pairs: {"type": 0, "size": size, "indices": list(pairs), "values": list(pairs.values())}
write("spark_vectors", pa.table({"label": label, "features": pa.array(
    [sparse(5, {1: 2.0, 4: .5}), dense(1., 0., 3.), sparse(5, {}), None, dense(0., 7.)], vector)}), compression="snappy")
write("dense_vectors", pa.table({"label": label, "features": pa.array(
    [[1., 0., 3.], [.5], [], None, [None, 7., float("nan")]], pa.list_(pa.float64()))}), compression="zstd")
write("dense_fixed", pa.table({"label": label, "features": pa.array(
    [[1., 0.], [.5, 2.], [3., 4.], [0., 5.], [6., 7.]], pa.list_(pa.float32(), 2))}))
pairs = [[(1, 2.), (4, .5)], [(0, 1.)], [], None, [(7, 3.)]]
write("pairs", pa.table({"label": label, "features": pa.array(
    [None if p is None else [{"index": i, "value": v} for i, v in p] for p in pairs],
    pa.list_(pa.struct([("index", pa.int32()), ("value", pa.float32())])))}))
write("maps", pa.table({"label": label, "features": pa.array(pairs, pa.map_(pa.int64(), pa.float64()))}), data_page_version="2.0")
lists = pa.table({"label": label,
    "indices": pa.array([[1, 4], [0], [], None, [7]], pa.list_(pa.uint64())),
    "values": pa.array([[2., .5], [1.], [], None, [3.]], pa.large_list(pa.float64()))})
write("lists_pyarrow_v1", lists, compression="snappy", write_page_checksum=True)
write("lists_pyarrow_v2", lists, data_page_version="2.0", use_dictionary=False, column_encoding={"indices.list.element": "DELTA_BINARY_PACKED"})
import pandas as pd
frame = pd.DataFrame({"x": [1., 2., 3.], "label": [1, 0, 1]}, index=[7, 8, 9])
frame[frame.x > 0].to_parquet(f"{out}/pandas_index", compression=None)
