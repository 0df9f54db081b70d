"""Extension of griffe: parameters that share a line of a docstring (`balance, gap`) get their own types and defaults.

As griffe reads such a line, all of them have those of the first.
"""

import re
from typing import Any

from griffe import Extension, Function

SHARED = re.compile(r"^(\w+(?:,[ ]\w+)+),?(?:[ ]\\)?\n((?:\w[^\n:]*\n)*)((?:[ ]+\S[^\n]*\n?)+)", re.MULTILINE)


class EachParameter(Extension):
    """Give every parameter a line of its own before docstrings are read."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        """Take the names of shared lines apart; what is said below holds for each."""
        if func.docstring is not None:
            func.docstring.value = SHARED.sub(_apart, func.docstring.value)


def _apart(shared: re.Match[str]) -> str:
    names = re.findall(r"\w+", f"{shared[1]} {shared[2]}")
    return "".join(f"{name}\n{shared[3].rstrip()}\n" for name in names)
