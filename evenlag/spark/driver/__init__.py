"""Spark's session, storage, sources and connector."""
