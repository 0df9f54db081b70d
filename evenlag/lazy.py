"""Lazy imports: packages that import a module when one of its names is first used."""

from __future__ import annotations

import sys
from importlib import import_module

from evenlag.errors import lacking

TYPE_CHECKING = False  # importing typing takes some milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazily(
    package: str, public: Mapping[str, str], inner: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` for a package (PEP 562).

    Parameters
    ----------
    package : str
        The package's `__name__`.
    public : mapping of module to names
        The names that each module defines, separated by blanks; a submodule of the package may define itself. For type
        checkers, the package must import the same names under `TYPE_CHECKING`.
    inner : mapping of module to names, optional
        Likewise, for names that are not part of `__all__`.

    Examples
    --------
    >>> names, get, _ = lazily("evenlag", {"evenlag.model.plan": "Plan plain", "evenlag.live": "live"})
    >>> names, get("Plan").__name__, get("live").__name__
    (['Plan', 'live', 'plain'], 'Plan', 'evenlag.live')
    """
    homes = {name: home for each in (public, inner or {}) for home, names in each.items() for name in names.split()}

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

    return sorted(name for each in public.values() for name in each.split()), get, names
