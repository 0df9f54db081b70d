"""Solve groups of one topic with evenlag: `groups` of `lags`, `members` and `owner`, and `parameters` of `solve`.

Limits count processor time, that of solvers in processes of their own included.
"""

from benchmarks.others.wire import Document, count_processor_time, processor_seconds, serve

count_processor_time()

from evenlag import Problem, solve  # noqa: E402

WARM_UP = ({"lags": [13, 11, 10, 9, 7, 5, 4, 4, 3, 1], "members": 3, "owner": None}, {"time_limit": 0.5})


def answer(question: Document) -> Document:
    """Return a plan with its bound for each group; what is imported at the first call does not count."""
    solved(*WARM_UP)
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
