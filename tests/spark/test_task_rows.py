"""What a task returns: each row that it read is in a plan or rejected, in batches of any size, whatever the time."""

import random
import time
from collections import Counter
from typing import Any

import pytest

from evenlag.search.options import SolveOptions
from evenlag.spark.worker import arrow_task as tasks
from evenlag.spark.worker.group_work import Want
from evenlag.spark.worker.turns import Budget
from tests.support.fleet import OFFSET_NAMES, Row, break_at_random, fleet
from tests.support.fleet_tasks import SCHEMA, Returned, arrow, rules, solve_task
from tests.support.problems import seeds

QUICK = SolveOptions(method="lag-aware")
PLACE = ("snapshot_ts", "group", "topic", "partition")


def text_rows(rows: list[Row]) -> Any:
    """Return rows of the offsets table as texts, as those of CSV."""
    texts = [{name: None if row.get(name) is None else str(row[name]) for name in OFFSET_NAMES} for row in rows]
    return arrow(texts)


def budgets() -> dict[str, Budget]:
    return {"none": Budget(0.1), "some": Budget(0.1, time.time() + 0.5), "late": Budget(0.1, time.time() - 1)}


@pytest.mark.parametrize("budget", budgets())
@pytest.mark.parametrize("seed", seeds(4))
def test_rows_in_are_plans_rejects_and_log_ends(budget: str, seed: int) -> None:
    offsets, members = fleet(12, seed=seed)
    broken, expected = break_at_random(offsets, 0.1, seed)
    ends = [row | {"snapshot_ts": "2025-12-31T00:00:00Z", "log_only": "true", "current_offset": None}
            for row in offsets[::5]]  # fmt: skip
    wrong = [row | {"weight": -1.0} if n % 9 == 0 else row for n, row in enumerate([*members, members[5]])]
    random.Random(seed).shuffle(broken)
    for want, options in ((Want.PLAN, SolveOptions(gap=0.5)), (Want.BOTH, QUICK), (Want.PLAN, QUICK)):
        table = text_rows([*broken, *ends])
        returned = solve_task(table, wrong, options, want, budgets()[budget], recorded=want == Want.BOTH)
        rejects = Counter(row["source"] for row in returned.rejects)
        [read] = [row for row in returned.own if row["offsets"] is not None]
        assert (read["offsets"], read["members"], read["log_ends"]) == (len(table), len(wrong), len(ends))
        assert read["offsets"] == len(returned.plans) + rejects["offsets"] + read["log_ends"]
        assert Counter(row["reason"] for row in returned.rejects if row["source"] == "offsets") == expected
        assert rejects["members"] == sum(n % 9 == 0 for n in range(len(wrong))) + (5 % 9 != 0 and len(members) % 9 != 0)
        placed = [tuple(row[name] for name in PLACE) for row in returned.plans]
        assert len({*placed}) == len(placed)
        assert {row["group"] for row in returned.plans} <= {group for _, group in returned.groups}
        left = Counter(row["group"] for row in returned.rejects if row["source"] == "offsets" and row["snapshot_ts"])
        for (_, group), row in returned.groups.items():
            assert row["rejected_rows"] == left[group]


def test_small_batches_have_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets, members = fleet(12)
    broken, _ = break_at_random(offsets, 0.3, 1)
    found: list[Returned] = []
    for rows in (20_000, 7):
        monkeypatch.setattr(tasks, "ROWS_PER_BATCH", rows)
        found += [solve_task(text_rows(broken), members, QUICK, Want.PLAN, budget) for budget in budgets().values()]
    for each in found:
        assert sorted(map(repr, each.plans)) == sorted(map(repr, found[0].plans))
        assert sorted(map(repr, each.rejects)) == sorted(map(repr, found[0].rejects))
        assert each.groups.keys() == found[0].groups.keys()
        counted = [row for row in each.own if row["offsets"] is not None]
        assert [row["offsets"] for row in counted] == [len(broken)]  # once, however many rows a task has of its own
    assert max(len(row["rejects"] or ()) for row in found[-1].own) == 7
    assert len(found[-1].own) > len(found[0].own) + 10


def test_a_task_without_rows_says_so() -> None:
    offsets, members = fleet(1)
    solver = tasks.Solver(rules(offsets, members), QUICK, Budget(1.0), Want.PLAN, SCHEMA, lambda: (7, 0))
    [batch] = solver([])
    [row] = batch.to_pylist()
    assert (row["task"], row["offsets"], row["members"], row["log_ends"], row["rejects"]) == (7, 0, 0, 0, [])
    assert (row["group"], row["plans"]) == (None, None)
