"""What holds the objective up: the rules without which the bound would be lower."""

from __future__ import annotations

from evenlag.model.balance import CountRule
from evenlag.model.objective import Objective
from evenlag.model.plan import Number, whole
from evenlag.model.relaxations import relaxations
from evenlag.model.result import Binding, StoppedBy
from evenlag.search.cache import SolveCache
from evenlag.search.exact.relaxations import Bounds
from evenlag.search.incumbent import Incumbent, Note, begin
from evenlag.search.portfolio import BOUND
from evenlag.search.stage import Step, run_round, run_steps
from evenlag.search.task import Target, Task

SHARE = 0.1  # of the time limit, about: each question gets half of what is left of it …
EACH = SHARE / len(Binding)  # … and this at least; with work limits this
SLIGHTLY = 0.03  # of the limit, and seconds, that it may be exceeded by; of a short limit a quarter


def find_binding(task: Task, best: Incumbent, steps: tuple[Step, ...]) -> tuple[Binding, ...]:
    """Name the rules whose removal lowers the bound; `steps` look for a plan below it.

    A plan of the freed problem below our bound shows that it does, a bound of it no lower that it does not; where
    neither is found in time, or a gap will do, the bounds that need no solver are compared.
    """
    if best.bound == 0:
        return ()
    plain_bound = whole(task.least_base + task.goal.stickiness * best.moves_bound)
    binding: list[Binding] = []
    began = task.clock.spent
    freed_of = relaxations(task.rule, task.goal)  # each is made only once there is time for it
    while True:
        if _late(task, best):
            best.take(Note("no time was left to find out all that binds"), "binding")
            break
        if (relaxation := next(freed_of, None)) is None:
            break
        name, rule, goal = relaxation
        if goal.max_moves is not None and rule.fewest_moves()[0] > goal.max_moves:
            continue  # freed of this rule there is no plan within the budget at all
        share = (
            EACH if task.clock.deterministic else max(EACH, (SHARE - (task.clock.spent - began) / task.clock.limit) / 2)
        )
        if name not in binding and _binds(task, best, steps, *relaxation, plain_bound, share):
            binding.append(name)
    return tuple(binding)


def _late(task: Task, best: Incumbent) -> bool:
    """Say whether there is no time for another question; with work limits the clock is only a net."""
    if task.clock.deterministic:
        return task.clock.passed()
    bounds = best.seconds.get(Bounds.name, 0.0)
    limit = task.clock.limit
    return task.clock.spent + 2 * bounds > (1 + SLIGHTLY) * limit + min(SLIGHTLY, limit / 4)


def _binds(
    task: Task,
    best: Incumbent,
    steps: tuple[Step, ...],
    name: Binding,
    rule: CountRule,
    goal: Objective,
    plain_bound: Number,
    share: float,
) -> bool:
    """Whether the bound is lower in a problem freed of one rule."""
    cache = task.cache if rule.problem is task.problem else SolveCache(rule.problem)
    clock = task.clock.afterwards(share)
    target = Target(cutoff=best.bound)
    freed_task = Task(rule, goal, clock, cache, target, task.seed, task.threads, tie_break=False)
    freed = Incumbent(freed_task)
    run_round(freed_task, freed, BOUND, clock.allowance(), set())
    freed_bound = freed.bound
    if freed_bound < best.bound and not task.target.gap and clock.left() > 0:
        freed = run_steps(freed_task, begin(freed), steps)
        if clock.deterministic and freed.stopped_by == StoppedBy.TIME:
            best.take(Note(f"the wall clock, not the work limit, ended the question whether {name} binds"), "binding")
    below = freed.found and freed.value < best.bound
    return below or (freed.bound < best.bound and freed_bound < plain_bound)
