"""A lake of Iceberg tables in a folder, and runs into it in processes of their own: Spark must start with Iceberg.

`python -m tests.support.lakes killed FOLDER` runs twice and is killed in the second run, while it replaces tables;
`again` looks at what is there and runs once more. Both print what the tables then are, a line each.
"""

import json
import os
import random
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tests.support.command import evenlag
from tests.support.few_rows import FEW_ROWS
from tests.support.frames import tables

PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"
OUT = "table:lake.fleet"
TABLES = ("plans", "audit", "rejects", "groups", "summary_strategies", "summary_groups", "summary_binding")
OPTIONS: dict[str, Any] = {"deterministic": True, "group_time_limit": 1.0, "gap": 0.1}


def settings(folder: Path) -> dict[str, str]:
    """For a Spark with the catalog `lake`, its tables in this folder."""
    catalog = "spark.sql.catalog.lake"
    return FEW_ROWS | {
        "spark.jars.packages": PACKAGE,
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": f"file://{folder}/lake",
    }


def say(spark: Any) -> None:
    """Print the run of each table, and its rows without their times."""
    found = {}
    for name in TABLES:
        [row] = spark.sql(f"SHOW TBLPROPERTIES lake.fleet.{name} ('evenlag.run')").collect()
        rows = spark.table(f"lake.fleet.{name}").drop("seconds").collect()
        found[name] = {"run": row["value"], "rows": sorted(map(repr, rows))}
    print(json.dumps(found), flush=True)


def killed(spark: Any) -> None:
    """Run on two groups, then on three; be killed at a random moment after two of seven tables are replaced."""
    from pyspark.sql.readwriter import DataFrameWriterV2

    from evenlag import pipeline

    pipeline.run(spark, *tables(spark, 2), out=OUT, **OPTIONS)
    say(spark)
    replace, count = DataFrameWriterV2.createOrReplace, []

    def replace_until_killed(self: Any) -> None:
        count.append(1)
        if len(count) == 3:
            threading.Timer(random.uniform(0, 0.5), os.killpg, (os.getpid(), signal.SIGKILL)).start()
        replace(self)

    DataFrameWriterV2.createOrReplace = replace_until_killed  # type: ignore[method-assign]
    pipeline.run(spark, *tables(spark, 3), out=OUT, overwrite=True, **OPTIONS)
    os.killpg(os.getpid(), signal.SIGKILL)


def again(spark: Any) -> None:
    """Print the tables, and run again on three groups by the command, from tables to tables."""
    say(spark)
    for name, df in zip(("offsets", "members"), tables(spark, 3), strict=True):
        df.writeTo(f"lake.kafka.{name}").using("iceberg").create()
    words = ["fleet", "audit", "table:lake.kafka.offsets", "--members", "table:lake.kafka.members", "--out", OUT]
    done = evenlag(*words, "--overwrite", "--deterministic", "--group-time-limit", "1.0", "--gap", "0.1")
    assert done.returncode == 0, done.stderr
    assert all(f"{OUT}.{name}" in done.stdout.replace("\n", "") for name in TABLES), done.stdout
    say(spark)


if __name__ == "__main__":
    from evenlag.pipeline import local_session

    what, folder = {"killed": killed, "again": again}[sys.argv[1]], Path(sys.argv[2])
    what(local_session(cores=2, settings=settings(folder)))
