"""Spark's settings for tests: on a few rows, compiling takes longer than it saves.

The command under spark-submit (test_shipping.py) runs as Spark does by itself, and compiles.
"""

from pathlib import Path

from evenlag.spark.driver.settings import launch_settings

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # to start; a local session has these by itself

FEW_ROWS = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


def few_rows(folder: Path) -> dict[str, str]:
    """Return the variables that give a Spark in another process these settings, after those of evenlag."""
    settings = launch_settings({}) | FEW_ROWS
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return {"SPARK_CONF_DIR": str(folder)}
