"""Row rules in native Spark columns."""
