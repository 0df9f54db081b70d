"""Rules for rows, in native Spark columns."""
