"""Makes the files beside it: two hours of three organizations, as pandas, pyarrow and polars write them.

    python make.py      # with pandas 3, pyarrow 26 and polars 2
"""

import struct
from datetime import datetime, timezone
from decimal import Decimal

import pandas
import polars
import pyarrow
import pyarrow.parquet

HOURS = [datetime(2024, 3, 1, hour, tzinfo=timezone.utc) for hour in (0, 1)]
ROWS = [
    (hour, cluster, "A100-SXM4-80GB", organization, gpus + number)
    for number, hour in enumerate(HOURS)
    for cluster, organization, gpus in (("earth", "vision", 2.5), ("earth", "speech", 4.0), ("mars", "*", 6.125))
]
NAMES = ["hour", "cluster", "gpu_model", "organization", "demand_gpus"]

frame = pandas.DataFrame(ROWS, columns=NAMES)
# An index of its own, categories, and nanoseconds.
frame.astype({"cluster": "category", "hour": "datetime64[ns, UTC]"}).set_index(pandas.Index(range(7, 13))).to_parquet("pandas.parquet")

table = pyarrow.table(dict(zip(NAMES, map(list, zip(*ROWS)))))
table = table.set_column(0, "hour", table["hour"].cast(pyarrow.timestamp("ms", tz="UTC")))
table = table.set_column(4, "demand_gpus", table["demand_gpus"].cast(pyarrow.float32()))
# Two rows to a group, sorted by cluster, so that statistics tell groups apart.
pyarrow.parquet.write_table(table.sort_by("cluster"), "pyarrow.parquet", row_group_size=2, compression="gzip", version="1.0")

# Compressed by zstd, in microseconds; and naive times as text, whole GPUs, without compression.
polars.DataFrame(ROWS, schema=NAMES, orient="row").write_parquet("polars.parquet")
text = polars.DataFrame(ROWS, schema=NAMES, orient="row").with_columns(
    polars.col("hour").dt.strftime("%Y-%m-%d %H:%M:%S"), polars.col("demand_gpus").cast(polars.Int64)
)
text.write_parquet("polars-text.parquet", compression="lz4")

# With the end of the hour, which the last two rows do not know.
ENDS = [2.5, 1.0, 0.125, 3.25, None, float("nan")]
ends = polars.DataFrame(ROWS, schema=NAMES, orient="row").with_columns(polars.Series("demand_at_end_gpus", ENDS, polars.Float64, strict=False))
ends.write_parquet("polars-ends.parquet")

# Amounts as other programs write them: decimals of 3 digits in 16 bytes and in 4, unsigned whole numbers, and ends of hours of which none is known.
def of(name, **columns):
    made = pyarrow.table(dict(zip(NAMES, map(list, zip(*ROWS)))))
    for column, values in columns.items():
        place = made.column_names.index(column) if column in made.column_names else len(made.column_names)
        made = made.set_column(place, column, values) if place < made.num_columns else made.append_column(column, values)
    pyarrow.parquet.write_table(made, name, store_decimal_as_integer="small" in name)


decimals = [Decimal(str(row[4])) for row in ROWS]
of("decimal.parquet", demand_gpus=pyarrow.array(decimals, pyarrow.decimal128(22, 3)))
of("decimal-small.parquet", demand_gpus=pyarrow.array(decimals, pyarrow.decimal128(7, 3)))
of("unsigned.parquet", demand_gpus=pyarrow.array([0, 4, 6, 3, 200, 7], pyarrow.uint8()), demand_at_end_gpus=pyarrow.nulls(6))
of("unsigned-large.parquet", demand_gpus=pyarrow.array([0, 4, 6, 3, 5, 2**63 + 7], pyarrow.uint64()))

# A column twice, and a page that was changed after its checksum was written.
twice = pyarrow.table(dict(zip(NAMES, map(list, zip(*ROWS)))))
pyarrow.parquet.write_table(twice.append_column("demand_gpus", twice["demand_gpus"]), "twice.parquet")
pyarrow.parquet.write_table(twice, "checksum.parquet", write_page_checksum=True, compression="none", use_dictionary=False)
with open("checksum.parquet", "r+b") as written:
    data = written.read()
    written.seek(data.index(struct.pack("<d", 6.125)))
    written.write(struct.pack("<d", 22.0))
