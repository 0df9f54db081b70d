"""Benchmarks: `make bench` runs them side by side and writes each table to docs/benchmarks/NAME.md."""
