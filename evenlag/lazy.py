"""Lazy imports: packages that import a module when one of its names is first used."""

from __future__ import annotations

import sys
from importlib import import_module

from evenlag.errors import lacking

TYPE_CHECKING = False  # importing typing takes some milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package (PEP 562).

    Parameters
    ----------
    package : str
        The package's `__name__`.
    homes : mapping of name to module
        The module that defines each name; `package.name` stands for a submodule itself. For type checkers, the
        package must import the same names under `TYPE_CHECKING`.

    Examples
    --------
    >>> get, names = lazily("evenlag", {"Plan": "evenlag.model.plan", "live": "evenlag.live"})
    >>> get("Plan").__name__, get("live").__name__
    ('Plan', 'evenlag.live')
    """

    def get(name: str) -> Any:
        if name not in homes:
            module = sys.modules[package]  # lets Python suggest the nearest name
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        try:
            home = import_module(homes[name])
        except ModuleNotFoundError as error:
            if (text := lacking(error)) is None:
                raise
            raise ModuleNotFoundError(f"{package}.{name}: {text}", name=error.name) from error
        value = home if homes[name] == f"{package}.{name}" else getattr(home, name)
        setattr(sys.modules[package], name, value)  # later accesses find it directly
        return value

    def names() -> list[str]:
        return sorted({*(name for name in vars(sys.modules[package]) if name.startswith("__")), *homes})

    return get, names
