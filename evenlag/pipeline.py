"""Former name of `evenlag.spark`, kept importable with all its names."""

from typing import TYPE_CHECKING, Any

from evenlag import spark

if TYPE_CHECKING:
    from evenlag.spark import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the import above
    __all__, __dir__ = spark.__all__, spark.__dir__

    def __getattr__(name: str) -> Any:
        return getattr(spark, name)
