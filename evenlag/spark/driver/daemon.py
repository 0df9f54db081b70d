"""What Spark forks its Python workers from: with all they need imported, which each would otherwise do anew."""

import gc

from pyspark.daemon import manager

if __name__ == "__main__":
    gc.freeze()  # else each worker looks through all of it after every task
    manager()  # type: ignore[no-untyped-call]
