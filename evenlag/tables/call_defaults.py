"""Default parameters of calls on tables; for those of the solver see `SolveOptions`."""

AUTO_OFFSET_RESET = "latest"
"""Kafka's default: a partition without a commit is read from its end."""

TIME_LIMIT = 60.0
"""Time limit of a whole call that returns a DataFrame, in seconds."""

GROUP_TIME_LIMIT = 2.0
"""Time limit of one group, in seconds."""
