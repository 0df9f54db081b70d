"""The side of a question that runs in a tool's own environment: the tool, `wire`, and the standard library."""
