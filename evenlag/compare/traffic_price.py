"""The price of traffic between racks, for reports: bytes per second to an amount of money per month."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from evenlag.errors import InvalidProblemError
from evenlag.model.pair_costs import pair_costs
from evenlag.model.problem import Problem
from evenlag.model.values import amount, shown

MONTH = 730 * 3600  # seconds in a twelfth of a year, as clouds bill it
_PRICE = re.compile(r"\s*([^/\s]+)\s*/\s*([A-Za-z]+)\s*", re.ASCII)
_UNITS = {
    f"{prefix}{binary}B": base**power
    for binary, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate(("K", "M", "G", "T", "P"), start=1)
} | {"B": 1}


@dataclass(frozen=True)
class TrafficPrice:
    """Price of a byte that crosses racks, in any currency.

    Attributes
    ----------
    text : str
        The price as given, such as "0.01/GB".
    """

    text: str
    per_byte: Fraction

    @classmethod
    def of(cls, text: str) -> TrafficPrice:
        """Parse a price such as "0.01/GB"; KB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024.

        Raises
        ------
        InvalidProblemError
            The text is not such a price.
        """
        match = _PRICE.fullmatch(text)
        number, percent = amount(match[1]) if match else (None, False)
        unit = {name.lower(): size for name, size in _UNITS.items()}.get(match[2].lower()) if match else None
        if number is None or percent or number < 0 or unit is None:
            raise InvalidProblemError(f"a traffic price is a number per unit, such as 0.01/GB, not {shown(text)}")
        return cls(text.strip(), number / unit)

    def month(self, traffic: int) -> Fraction:
        """Return the cost per month of 730 hours of traffic across racks, given in bytes per second."""
        return self.per_byte * traffic * MONTH

    def check(self, problem: Problem) -> None:
        """Raise InvalidProblemError unless the problem has both racks and traffic in bytes."""
        if pair_costs(problem, "crossings") is None:
            raise InvalidProblemError(
                f"group {problem.group!r}: pricing traffic needs the racks of members and of partitions: give the "
                "columns rack and replica_racks, or rack and partition_racks of a problem file"
            )
        if problem.pairs.traffic is None:
            raise InvalidProblemError(
                f"group {problem.group!r}: pricing traffic needs the traffic of partitions: give bytes per second as "
                "--traffic, as a column traffic, or in the problem file"
            )
