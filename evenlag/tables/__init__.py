"""Snapshot tables as files and rows: their columns, how they are read and written. No Spark here."""
