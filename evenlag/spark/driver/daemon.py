"""What Spark forks its Python workers from: with all they need imported, which each would otherwise do anew."""

import gc

import pyarrow as pa
from pyspark.daemon import manager

import evenlag.spark.worker.task  # noqa: F401  what workers ask for, and all that it imports

if __name__ == "__main__":
    pa.array([0])  # imports pandas, where it is there
    gc.freeze()  # else each worker looks through all of it after every task
    manager()  # type: ignore[no-untyped-call]
