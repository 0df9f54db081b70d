"""What executors need, and whether they have it."""

from __future__ import annotations

PACKAGES = ("numpy", "ortools", "pyarrow")
"""What tasks import beside evenlag, under the names of both the packages and their modules."""
