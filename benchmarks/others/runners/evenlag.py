"""Solve groups of one topic with evenlag: `groups` of `lags`, `members` and `owner`, and `parameters` of `solve`.

Limits count processor time, that of solvers in processes of their own included. Those solvers look at the clock
themselves: what they are given is stretched by the load of the machine.
"""

from benchmarks.others.wire import Document, count_processor_time, processor_seconds, serve, stretch

count_processor_time()

from evenlag import Problem, solve  # noqa: E402
from evenlag.model.backends.outcome import Limits  # noqa: E402

BUSY = 1.1  # seconds that pass for one of processor time: what is above is load
WARM_UP = ({"lags": [13, 11, 10, 9, 7, 5, 4, 4, 3, 1], "members": 3, "owner": None}, {"time_limit": 0.5})


def answer(question: Document) -> Document:
    """Return a plan with its bound for each group; what is imported at the first call does not count."""
    solved(*WARM_UP)
    if (factor := stretch()) > BUSY:
        by_clock = Limits.solver_seconds

        def stretched(limits: Limits, started: float) -> float:
            return factor * by_clock(limits, started)

        Limits.solver_seconds = stretched  # type: ignore[method-assign, assignment]
    return {"answers": [solved(group, question["parameters"]) for group in question["groups"]]}


def solved(group: Document, parameters: Document) -> Document:
    """Return the member of each partition, the bound as a fraction, and the processor time of the call."""
    names = [f"m{m:04}" for m in range(group["members"])]
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for partition, owner in enumerate(group["owner"] or ()):
        owned[names[owner]].append(("t", partition))
    started = processor_seconds()
    problem = Problem.from_lags({"t": group["lags"]}, {name: ["t"] for name in names}, owned=owned)
    result = solve(problem, **parameters)
    seconds = processor_seconds() - started
    return {
        "member_of": result.plan.member_of.tolist(),
        "bound": str(result.bound),
        "proven": result.status == "OPTIMAL",
        "seconds": seconds,
    }


if __name__ == "__main__":
    serve(answer)
