"""Local search: improve a given plan."""
