"""The MIP backends by name; to add one, write its `solve` in a file beside these and name it here."""

from evenlag.model.backends import cp_sat, pulp_models
from evenlag.model.backends.outcome import Backend, Limits, Outcome

BACKENDS: dict[str, Backend] = {
    "cp-sat": cp_sat.solve,
    "cbc": pulp_models.solve_cbc,
    "highs": pulp_models.solve_highs,
}

# Booleans beyond which a backend is not tried: CP-SAT's presolve would ignore the time limit, and for the others
# building the model alone would outlast it.
LARGEST: dict[str, int] = {"cp-sat": 20_000, "cbc": 100_000, "highs": 100_000}

__all__ = ["BACKENDS", "LARGEST", "Backend", "Limits", "Outcome"]
