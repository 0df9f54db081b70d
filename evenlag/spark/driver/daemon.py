"""The process from which Spark forks Python workers, with all their modules imported once."""

import gc

import pyarrow as pa
from pyspark.daemon import manager

import evenlag.spark.worker.arrow_task  # noqa: F401  the module that workers need

if __name__ == "__main__":
    pa.array([0])  # imports pandas, if installed
    gc.freeze()  # otherwise each worker's garbage collection would scan all modules after every task
    manager()  # type: ignore[no-untyped-call]
