"""Work of the executors on the rows of their groups (no Spark import)."""
