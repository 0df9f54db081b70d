"""Claims: a kind, and the names and numbers that it states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenlag.model.certificate import in_json


@dataclass(frozen=True)
class Claim:
    """A statement about a result.

    Attributes
    ----------
    kind : str
        The statement made; docs/explain.md lists the kinds.
    data : mapping of str to value
        Names, and numbers in messages unless they count something. A partition is (topic, number). Numbers are exact:
        whole, or a Fraction.
    """

    kind: str
    data: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON: a Fraction as text (`"7/3"`), a partition as a list."""
        return {"kind": self.kind, **{name: _plain(value) for name, value in self.data.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return in_json(value)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | bool) else int(value)
