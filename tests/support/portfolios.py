"""The portfolio without some of its stages, so that tests judge the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evenlag.search import portfolio

PAGES = ("AUTO", "SCENARIOS", "TERMS")


@contextmanager
def without(*stages: str) -> Iterator[None]:
    """Leave out stages by name, wherever they stand; start plans stay."""
    pages = {page: getattr(portfolio, page) for page in PAGES}
    try:
        for page, steps in pages.items():
            setattr(portfolio, page, tuple(step for step in steps if step.stage.name not in stages))
        yield
    finally:
        for page, steps in pages.items():
            setattr(portfolio, page, steps)


def stages(page: str = "TERMS") -> list[str]:
    """Return the names of a portfolio's stages, each once."""
    return list(dict.fromkeys(step.stage.name for step in getattr(portfolio, page)))
