"""Consumer groups in virtual time: our own code on a model of Kafka, with faults drawn from a seed.

`python -m evenlag.simulation --hours 10 --seed 1` runs it and prints what happened, or the story of a failure.
"""

from evenlag.simulation.trials import KINDS, simulate
from evenlag.simulation.troubled_group import Report
from evenlag.simulation.world import BrokenPromiseError

__all__ = ["KINDS", "BrokenPromiseError", "Report", "simulate"]
