"""Parquet files: read with a clear error, written with zstd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from kvref.errors import cause_of
from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read()
    except FileNotFoundError:
        raise BenchError(f"{path} is missing: copy the whole run folder again, or repeat the run") from None
    except (pa.ArrowException, OSError) as error:
        raise BenchError(
            f"{path} is not a whole parquet file, cut short or overwritten ({cause_of(error)}): copy it again, or"
            " repeat the run"
        ) from None


def write(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, compression="zstd", compression_level=9)
