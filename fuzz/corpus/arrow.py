"""Arrow IPC files and streams that pyarrow and pandas write: the seeds of their reader."""
import datetime, os, sys
import pandas as pd, pyarrow as pa, pyarrow.feather as feather

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
n = 5
rows = range(n)
table = pa.table({
    "label": pa.array([r % 2 for r in rows], pa.int8()),
    "f32": pa.array([None if r == 3 else r + 0.5 for r in rows], pa.float32()),
    "i64": pa.array([-r for r in rows], pa.int64()),
    "bool": pa.array([r % 2 == 0 for r in rows]),
    "time": pa.array([datetime.datetime(1970, 1, 1, 0, r) for r in rows], pa.timestamp("us", "UTC")),
    "text": pa.array([f"word {r % 2}" for r in rows]),
    "large": pa.array([f"large {r}" for r in rows], pa.large_string()),
    "view": pa.array([f"a long view of a word {r}" for r in rows], pa.string_view()),
    "kind": pa.array([f"kind {r % 2}" for r in rows]).dictionary_encode(),
})
vector = pa.struct([("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))])
tables = {
    "table": table,
    "lists": pa.table({"label": pa.array([1.0, 0.0]), "indices": pa.array([[1, 7], []], pa.list_(pa.int32())),
                       "values": pa.array([[0.5, 2.0], []], pa.list_(pa.float32()))}),
    "dense": pa.table({"label": pa.array([1, 0]), "features": pa.array([[1.0, 2.0], [3.0, 0.0]], pa.list_(pa.float64(), 2))}),
    "maps": pa.table({"label": pa.array([1, 0]), "features": pa.array([[(1, 0.5)], []], pa.map_(pa.int64(), pa.float64()))}),
    "vectors": pa.table({"label": pa.array([1.0, 0.0]), "features": pa.array(
        [{"type": 0, "size": 9, "indices": [1, 8], "values": [0.5, 2.0]}, {"type": 1, "values": [0.0, 3.0]}], vector)}),
}
for name, table in tables.items():
    for codec in (None, "lz4", "zstd"):
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_file(f"{out}/{name}_file_{codec or 'plain'}", table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=3)
        with pa.ipc.new_stream(f"{out}/{name}_stream_{codec or 'plain'}", table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=3)
frame = pd.DataFrame({"label": [0, 1, 0], "size": [1.5, 2.5, None]}, index=pd.Index([7, 8, 9], name="key"))
feather.write_feather(pa.Table.from_pandas(frame), f"{out}/pandas_feather")
# Without four bytes before it, a message is not where the footer says. The offset of its root is taken for the length of the
# metadata, and the zeros behind for the root: a message with nothing in it to check.
whole = open(f"{out}/table_file_lz4", "rb").read()
open(f"{out}/bytes_missing_before_a_message", "wb").write(whole[:8] + whole[12:])
