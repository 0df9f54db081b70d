"""The former name of `evenlag.spark`, which stays importable with all its names."""

from typing import TYPE_CHECKING, Any

from evenlag import spark

if TYPE_CHECKING:
    from evenlag.spark import *  # noqa: F403

__all__ = spark.__all__


def __dir__() -> list[str]:
    return dir(spark)


if not TYPE_CHECKING:  # to a type checker every name would be there

    def __getattr__(name: str) -> Any:
        return getattr(spark, name)
