"""Defaults of the calls on tables; those of the solver are in `SolveOptions`."""

AUTO_OFFSET_RESET = "latest"
"""Kafka's own: a group that never committed reads what comes from now on."""

TIME_LIMIT = 60.0
"""Seconds for a whole call that gives a DataFrame."""

GROUP_TIME_LIMIT = 2.0
"""Seconds, the most that one group gets."""
