"""A task's own number on executors, in a module with only the imports that tasks need anyway."""

from pyspark import TaskContext


def attempt() -> tuple[int, int]:
    """Return the number of the current task, and the number of its failed attempts."""
    context = TaskContext.get()
    return (0, 0) if context is None else (context.partitionId(), context.attemptNumber())
