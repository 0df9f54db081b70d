"""Benchmarks: `make bench` runs them side by side and writes the tables to docs/benchmarks.md."""
