"""Plan a fleet from a Spark driver, within a minute: driver.py OFFSETS.csv MEMBERS.csv OUT.

The same script runs by itself, under `spark-submit`, and with Spark Connect (SPARK_REMOTE=sc://HOST:PORT).
"""

import sys

from pyspark.sql import SparkSession

import evenlag

offsets, members, out = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
tables = [spark.read.csv(path, header=True) for path in (offsets, members)]
solved = evenlag.spark.solve(*tables, want="plan", time_limit=60)
solved.plans.write.mode("overwrite").parquet(f"{out}/plans")
solved.groups.write.mode("overwrite").parquet(f"{out}/groups")
groups, late = solved.groups.count(), solved.groups.filter("late or error is not null").count()
print(f"{groups} groups planned, {late} of them late or failed; {solved.rejects.count()} rows left out")
