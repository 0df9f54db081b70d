"""What is raised where a list would get too long."""


class TooManyError(Exception):
    """There is more to list than asked for."""
