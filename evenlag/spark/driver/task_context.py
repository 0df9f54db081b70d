"""What a task knows of itself, on the executors. Nothing is imported here but what a task needs anyway."""

from pyspark import TaskContext


def attempt() -> tuple[int, int]:
    """Return the number of this executor's task, and how many attempts at it failed before."""
    context = TaskContext.get()
    return (0, 0) if context is None else (context.partitionId(), context.attemptNumber())
