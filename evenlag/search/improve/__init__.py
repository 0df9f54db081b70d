"""Local search: better plans out of a plan."""
