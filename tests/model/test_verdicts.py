"""What a plan says first if its moves buy nothing, against figures counted by hand."""

from io import StringIO
from random import Random

import pytest
from rich.console import Console

import evenlag
from evenlag.report.text import plan_report
from tests.support.problems import alike, seeds


@pytest.mark.parametrize("seed", seeds(40))
def test_a_verdict_says_what_moves_buy(seed: int) -> None:
    random = Random(seed)
    names = "abc"[: random.randint(2, 3)]
    lags = [random.choice([0, 1, 5, 40, 1_000]) for _ in range(random.randint(3, 7))]
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for p in range(len(lags)):
        owned[random.choice(names)].append(("t", p))
    problem = alike(lags, names, owned=owned)
    stickiness = random.choice([0, 3, 500])
    result = evenlag.solve(problem, stickiness=stickiness, time_limit=20)
    loads = {name: sum(lags[p] for _, p in of) for name, of in owned.items()}
    today = max(loads.values()) - min(loads.values())
    counts = [len(of) for of in owned.values()]
    net, verdict = today - result.objective, result.verdict
    assert verdict == result.to_dict()["verdict"] == result.explain().verdict
    if not result.moves or net >= today / 100 > 0:
        assert result.objection is None
        assert verdict == result.explain().sentences[0]
        most = max(sum(lags[p] for _, p in of) for of in result.assignment.values())
        assert f" {most:,} messages" in verdict or f" at {most:,} messages" in verdict
        return
    assert verdict == result.objection
    assert verdict.startswith("Leave the group alone: " if net <= 0 else "Hardly worth a rebalance: ")
    assert f" {result.moves} move" in verdict
    assert (f"{result.moves * stickiness:,}" in verdict) or not stickiness
    assert ("only the count rule" in verdict) == (net <= 0 and max(counts) - min(counts) > 1)


def test_a_verdict_comes_first() -> None:
    owned = {"a": [("t", p) for p in range(4)], "b": [("t", 4), ("t", 5)]}
    problem = alike([900, 0, 0, 1, 2, 3], "ab", owned=owned)
    result = evenlag.solve(problem, stickiness=10)
    out = StringIO()
    Console(file=out, width=200).print(plan_report(result))
    first, second = out.getvalue().splitlines()[:2]
    assert second.startswith("group  6 partitions")
    assert first == (
        "Leave the group alone: 1 move saves 2 of 896 messages of spread (0.22 %) and costs 10; only the count rule "
        "asks for it."
    )
    assert evenlag.solve(problem, stickiness=10, balance="none").objection is None
    assert evenlag.solve(problem, stickiness=10, only_if_better="0%").verdict == first
    assert evenlag.solve(problem, stickiness=0, max_load=1_000).objection is not None
