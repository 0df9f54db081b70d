"""What a task needs of the Python it runs in, and a look at what is there."""

from __future__ import annotations

from collections.abc import Callable

from evenlag.model.backends import PACKAGES_OF

PACKAGES = ("numpy", "ortools", "pyarrow")
"""What tasks import beside evenlag, under the names of the packages, which are those of their modules too."""


def look_around(method: str = "auto", folder: str | None = None) -> Callable[[int], str]:
    """Return what a task does to load all that solving by a method needs, and to say what it has.

    It is a function within a function, and imports for itself, so that it travels whole: there may be no evenlag where
    it runs.

    Parameters
    ----------
    method : str
        As in `evenlag.solve`.
    folder : str, optional
        Path of a local folder; whether it may be written to is said too.

    Returns
    -------
    callable
        Takes a number that means nothing, and gives a JSON object: `python` and `executable`, `missing` (the names of
        packages), `broken` (why something that is there cannot be loaded, or null), `evenlag` (its version, or null)
        and `writes`.
    """
    wanted = ("evenlag", *PACKAGES, *PACKAGES_OF.get(method, ()))

    def look(_: int) -> str:
        import json
        import os
        import platform
        import sys
        from importlib import import_module
        from importlib.util import find_spec

        said = {"python": platform.python_version(), "executable": sys.executable, "evenlag": None, "broken": None}
        missing = [name for name in wanted if find_spec(name) is None]
        if not missing:
            try:
                said["evenlag"] = getattr(import_module("evenlag"), "__version__", "of unknown version")
                import_module("evenlag.spark.worker.worker")
            except ModuleNotFoundError as error:
                missing = [str(error.name)]
            except Exception as error:  # a library of the system that is not there, an older interface, …
                said["broken"] = f"{type(error).__name__}: {error}"
        return json.dumps(said | {"missing": missing, "writes": folder is None or os.access(folder, os.W_OK)})

    return look
