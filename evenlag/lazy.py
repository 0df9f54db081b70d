"""Lazy imports: packages that import a module when one of its names is first used."""

from __future__ import annotations

import sys
from importlib import import_module

from evenlag.errors import lacking

TYPE_CHECKING = False  # importing typing takes some milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazily(package: str, inner: str = "") -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` for a package (PEP 562).

    The names and their modules are read from the package's source, which imports them for type checkers: all lines
    `from MODULE import NAME as NAME`. MODULE may be the package itself, if NAME is a submodule.

    Parameters
    ----------
    package : str
        The package's `__name__`.
    inner : str, optional
        Names that are not part of `__all__`, separated by blanks.

    Examples
    --------
    >>> import evenlag.model
    >>> names, get, _ = lazily("evenlag.model", inner="rates")
    >>> names, get("named_part").__name__, get("rates").__name__
    (['named_part', 'problem_files'], 'named_part', 'evenlag.model.rates')
    """
    loader: Any = sys.modules[package].__loader__
    lines = [line.split() for line in loader.get_source(package).splitlines()]
    homes = {words[3]: words[1] for words in lines if words[:1] == ["from"] and words[4:5] == ["as"]}

    def get(name: str) -> Any:
        module = sys.modules[package]
        if name not in homes:  # with `obj`, Python suggests the nearest name
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        own = homes[name] == package
        try:
            home = import_module(f"{package}.{name}" if own else homes[name])
        except ModuleNotFoundError as error:
            if (text := lacking(error)) is None:
                raise
            raise ModuleNotFoundError(f"{package}.{name}: {text}", name=error.name) from error
        value = home if own else getattr(home, name)
        setattr(module, name, value)  # later accesses find it directly
        return value

    def names() -> list[str]:
        return sorted({*(name for name in vars(sys.modules[package]) if name.startswith("__")), *homes})

    return sorted({*homes} - {*inner.split()}), get, names
