"""Solve a group with Meta's Rebalancer: `lags`, `members`, `owner`, `counts`, `budget`, `goals`, `solver`, `seconds`.

Words of a question stand for numbers of its Thrift enumerations, which its Python interface takes in place of names.
"""

import importlib.metadata
from typing import Any

from rebalancer import ProblemSolver

from benchmarks.others.wire import Document, processor_seconds, serve

ABSOLUTE, LEAST, HIGHS = 1, 2, 2  # LimitType, CapacitySpecBound.MIN, OptimalSolverPackage
FORMULAS = {"linear": 1, "squares": 2, "max": 3, "ideal": 4, "variance": 6}
MOVES: dict[str, Document] = {
    "single": {"singleMoveTypeSpec": {}},
    "swap": {"swapMoveTypeSpec": {}},
    "triple": {"tripleLoopMoveTypeSpec": {}},
    "kl": {"klSearchMoveTypeSpec": {}},
    "chain": {"singleEndChainMoveTypeSpec": {}},
}


def solve(question: Document) -> Document:
    """Return the member of each partition, and what the solver says of its end."""
    started = processor_seconds()
    solution: dict[str, Any] = model(question).solve()
    seconds = processor_seconds() - started
    members = [solution["assignment"][f"p{p}"] for p in range(len(question["lags"]))]
    return {
        "member_of": [int(name[1:]) for name in members],
        "seconds": seconds,
        "ended": [s["endReason"] for s in solution["solverSummaries"]],
        "version": importlib.metadata.version("rebalancer"),
    }


def model(question: Document) -> Any:
    """Return the solver with a group written down: even counts as bounds, a budget as a limit of moves."""
    solver = ProblemSolver(service_name="rebalancer", service_scope="benchmarks")
    names = [f"p{p}" for p in range(len(question["lags"]))]
    held: dict[str, list[str]] = {f"m{m}": [] for m in range(question["members"])}
    for name, owner in zip(names, question["owner"], strict=True):
        held[f"m{owner}"].append(name)
    solver.set_object_name("partition").set_container_name("member").set_assignment(held)
    solver.add_object_dimension("lag", dict(zip(names, map(float, question["lags"]), strict=True)))
    solver.add_object_dimension("one", dict.fromkeys(names, 1.0))
    for name, count, bound in zip(("fewest", "most"), question["counts"], ({"bound": LEAST}, {}), strict=True):
        limit = {"type": ABSOLUTE, "globalLimit": float(count)}
        spec = {"name": name, "scope": "member", "dimension": "one", "limit": limit, **bound}
        solver.add_constraint({"capacitySpec": spec})
    if question["budget"] is not None:
        limit = {"type": ABSOLUTE, "globalLimit": float(question["budget"])}
        solver.add_partition("every", {"all": names})
        solver.add_constraint({"groupMoveLimitSpec": {"name": "budget", "partitionName": "every", "limit": limit}})
    for formula, weight in question["goals"].items():
        above = 0.0 if formula == "variance" else 1.0
        spec = {"name": formula, "scope": "member", "dimension": "lag", "formula": FORMULAS[formula]}
        solver.add_goal({"balanceSpec": {**spec, "upperBound": above}}, weight)
    solver.add_solver(solver_spec(question))
    return solver


def solver_spec(question: Document) -> Document:
    """Return HiGHS, or local search with these moves."""
    if question["solver"] == ["highs"]:
        return {"optimalSolverSpec": {"solveTime": question["seconds"], "solverPackage": HIGHS}}
    moves = [MOVES[move] for move in question["solver"]]
    return {"localSearchSolverSpec": {"solveTime": question["seconds"], "moveTypeList": moves}}


if __name__ == "__main__":
    serve(solve)
