"""Benchmarks are run by hand: their imports work, and every published table can be renewed."""

import random
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from benchmarks.__main__ import page
from benchmarks.balances import ANY, BOTH, EVEN, InForce, Outcome, drawn, evenness, followed, report, shares
from benchmarks.loop import by_plan
from benchmarks.pcmax import (
    BERNDT,
    LAWRINENKO,
    LIMITS,
    Instance,
    Run,
    WrongProofError,
    check,
    frangioni,
    index,
    measured,
    price,
    read,
    run,
    tally,
)
from benchmarks.pcmax import (
    Outcome as Measured,
)
from benchmarks.pcmax import drawn as share_of
from benchmarks.tables import TABLES
from benchmarks.weeks import STEPS_OF_A_DAY, history
from evenlag import Problem, solve
from evenlag.compare import replay
from evenlag.compare.history import intervals
from evenlag.live.followed_plan import FollowedPlan
from evenlag.model.balance import count_rule

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "benchmarks.md").read_text()
FILES = sorted(path.stem for path in (DOCS / "benchmarks").iterdir())


def test_every_table_has_a_function_and_is_listed() -> None:
    assert FILES
    assert set(FILES) <= {table.__name__ for table in TABLES}
    assert set(re.findall(r"\(benchmarks/(\w+)\.md\)", PAGE)) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_table_says_how_to_renew_it(name: str) -> None:
    title, _, lead, *lines = (DOCS / "benchmarks" / f"{name}.md").read_text().splitlines()
    assert title.startswith("# ")
    assert lead.startswith(f"Renewed by `make bench tables={name}`.")
    assert any(line.startswith("| ") for line in lines)
    assert lines[-1].startswith("Seed ")


def test_a_table_is_written_below_its_title() -> None:
    written = page("grid", ["# Title\n", "Words.\n", "| a |", "|---|", ""], 7).splitlines()
    assert [written[0], written[4], *written[-4:]] == ["# Title", "Words.", "| a |", "|---|", "", "Seed 7."]


def test_figures_of_the_page_are_in_their_tables() -> None:
    rows = [row for row in PAGE.splitlines() if row.startswith("|") and "**" in row]
    assert len(rows) == 6
    for row in rows:
        name = re.findall(r"\(benchmarks/(\w+)\.md\)", row)[0]
        figures = re.findall(r"\*\*([^*]+)\*\*", row)
        numbers = re.findall(r"\d[\d.,e-]*", (DOCS / "benchmarks" / f"{name}.md").read_text())
        assert set(figures) <= {number.rstrip(".,") for number in numbers}, name


# ---- table balances: counts and evenness over days ------------------------------------------------------------------


def over_the_mean(loads: list[float]) -> float:
    return max(loads) / mean(loads)


def handled(plan: InForce, produced: "np.ndarray", begin: int, end: int) -> list[float]:
    return [
        sum(float(produced[n, p]) for n in range(begin, end) for p, m in enumerate(plan.member_of) if m == member)
        for member in range(len(plan.members))
    ]


@pytest.mark.parametrize("seed", range(5))
def test_evenness_equals_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, day = 3 * STEPS_OF_A_DAY + 5, STEPS_OF_A_DAY
    produced = rng.integers(0, 50, (length, 5))
    ends = [0, 3, 9, day + 20, length]
    names = [("a-0", "b-0"), ("b-0",), ("a-1", "b-0"), ("a-1", "b-1")]
    plans = [
        InForce(begin, end, members, rng.integers(len(members), size=5).astype(np.int32))
        for (begin, end), members in zip(pairwise(ends), names, strict=True)
    ]
    found = evenness(plans, produced)
    weights = [plan.end - plan.begin for plan in plans]

    def by_time(values: list[float], of: list[int]) -> float:
        return sum(value * weight for value, weight in zip(values, of, strict=True)) / sum(of)

    counts = [[sum(m == n for m in plan.member_of) for n in range(len(plan.members))] for plan in plans]
    assert found.counts == pytest.approx(by_time([max(each) - min(each) for each in counts], weights))
    until_next = [over_the_mean(handled(plan, produced, plan.begin, plan.end)) for plan in plans]
    assert found.until_next == pytest.approx(by_time(until_next, weights))
    a_day = [over_the_mean(handled(plan, produced, plan.begin, plan.begin + day)) for plan in plans]
    assert found.days_on[0] == pytest.approx(by_time(a_day, weights))
    three = [over_the_mean(handled(plan, produced, plan.begin, plan.begin + 3 * day)) for plan in plans[:2]]
    assert found.days_on[1] == pytest.approx(by_time(three, weights[:2]))  # the others have not that much before them
    shares_of = {"a": 0.0, "b": 0.0}
    for plan in plans:
        for name, messages in zip(plan.members, handled(plan, produced, plan.begin, plan.end), strict=True):
            shares_of[name[0]] += messages
    assert found.all_days == pytest.approx(over_the_mean(list(shares_of.values())))


def test_no_arrivals_count_as_even() -> None:
    found = evenness([InForce(0, 3, ("a", "b"), np.array([0, 0], dtype=np.int32))], np.zeros((3, 2), dtype=np.int64))
    assert (found.counts, found.until_next, found.all_days) == (2, 1, 1)


@pytest.mark.parametrize("seed", range(20))
def test_plans_at_random_have_even_counts_where_they_should(seed: int) -> None:
    rng, random_sizes = np.random.default_rng(seed), random.Random(seed)
    members, sizes = random_sizes.randint(1, 7), [random_sizes.randint(1, 16) for _ in range(3)]
    topics = [f"t{n}" for n in range(3)]
    problem = Problem.from_lags(
        {topic: [0] * size for topic, size in zip(topics, sizes, strict=True)},
        {f"m{n}": topics for n in range(members)},
    )
    rule = count_rule(problem, "both")
    plans = [[drawn(rng, problem.topic_of, members, even) for _ in range(20)] for even in (True, False)]
    kept = [[rule.violation(counts_of(plan, problem)) is None for plan in drawn_so] for drawn_so in plans]
    assert all(kept[0])
    assert members == 1 or not all(kept[1])
    assert members == 1 or len({plan.tobytes() for plan in plans[0]}) > 1


def counts_of(member_of: "np.ndarray", problem: Problem) -> "np.ndarray":
    counts = np.zeros((len(problem.topics), len(problem.members)), dtype=np.int64)
    np.add.at(counts, (problem.topic_of, member_of), 1)
    return counts


def test_plans_of_a_replay_are_those_that_were_in_force() -> None:
    of_group = history(0, "flat", days=1.2, topics=2, partitions=5)
    course = list(intervals(of_group))
    both = followed(of_group, course, ["range", "roundrobin"], horizon=0, lag_limit=0)
    outcome, plans = both["range"]
    assert len(plans) > 5
    assert [plan.begin for plan in plans[1:]] == [plan.end for plan in plans[:-1]]
    assert (plans[0].begin, plans[-1].end) == (0, len(course))
    for plan in plans:  # the histories are of a group under the range assignor
        for interval in course[plan.begin : plan.end]:
            assert interval.before.problem.members == plan.members
            assert interval.before.problem.owner.tolist() == plan.member_of.tolist()
    produced = np.array([interval.produced for interval in course])
    assert outcome.evenness.until_next == evenness(plans, produced).until_next
    assert outcome.evenness.counts > both["roundrobin"][0].evenness.counts
    assert outcome.hours_above == pytest.approx(len(course) / 6)
    found = replay(of_group, strategies=["range"], horizon=0)
    row = next(row for row in found.summary if row.strategy == "range")
    assert row.mean_makespan is not None
    assert outcome.makespan == pytest.approx(float(row.mean_makespan / found.capacity.rate))
    assert outcome.moves == row.moves


def test_makespans_are_shares_of_those_with_even_counts() -> None:
    plan = InForce(0, 1, ("a",), np.zeros(1, dtype=np.int32))
    even = evenness([plan], np.ones((1, 1)))
    found = []
    for makespan in (500.0, 1200.0, 1300.0):
        times = {"0": 4, "1h": 1, "auto": 2, "hindsight": 1}
        of_both = {(horizon, BOTH): Outcome(even, 1000.0 * n, 1.0, 2) for horizon, n in times.items()}
        of_none = {(horizon, "none"): Outcome(even, makespan * n, 1.0, 2) for horizon, n in times.items()}
        found.append(of_both | of_none | {("", EVEN): Outcome(even), ("", ANY): Outcome(even)})
    assert shares(found, ("0", "none"), ("0", BOTH)) == [0.5, 1.2, 1.3]
    little = {("0", "none"): Outcome(even, 0.0), ("0", BOTH): Outcome(even, 0.001), ("1h", BOTH): Outcome(even, 120.0)}
    assert shares([little], ("0", "none"), ("0", BOTH)) == [1]
    assert shares([little], ("0", "none"), ("1h", BOTH)) == [0.5]
    lines = list(report(found))
    assert "| 1h | none | 1.20 | 0.50 | 1.30 | 1 | 16.7 | 1.0 | 2 | 0.00 | 1.00 | nan | nan | 1.00 |" in lines
    assert f"| – | {EVEN} | – | – | – | – | – | – | – | 0.00 | 1.00 | nan | nan | 1.00 |" in lines
    assert "- `both` with horizon `1h` over `both` with horizon 0: median 0.25, from 0.25 to 0.25." in lines


# ---- table pcmax: public instances ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def public() -> list[Instance]:
    return index()


@pytest.mark.parametrize(
    ("family", "jobs", "machines", "sizes", "seed", "first", "total", "last"),
    [  # of the published files
        ("1", 20, 8, "1..100", 1448, [56, 96, 26], 1045, 44),
        ("2", 100, 40, "20..100", 2004, [87, 20, 97], 6426, 36),
        ("4", 180, 60, "100+-20", 2687, [97, 145, 92], 17792, 106),
        ("5", 140, 56, "100+-50", 3641, [121, 142, 60], 15429, 50),
        ("7", 180, 60, "720+-180", 1036, [623, 1123, 494], 125638, 540),
        ("E3", 17, 3, "1..100", 2646, [3, 68, 15], 665, 11),
        ("BIG", 400, 100, "1..1000", 31755, [575, 740, 453], 194555, 683),
    ],
)
def test_public_instances_are_drawn_as_published(
    public: list[Instance], family: str, jobs: int, machines: int, sizes: str, seed: int,
    first: list[int], total: int, last: int,
) -> None:  # fmt: skip
    wanted = (family, jobs, machines, sizes, seed)
    (instance,) = (each for each in public if (each.family, each.jobs, each.machines, each.sizes, each.seed) == wanted)
    found = instance.draw()
    assert (len(found), found[:3], sum(found), found[-1]) == (jobs, first, total, last)


def test_sizes_that_are_not_positive_are_drawn_again() -> None:
    found = Instance("", 1000, 1, "1+-50", 0, None, ()).draw()
    again = random.Random(0)
    assert found == [size for size in (int(again.normalvariate(1, 50)) for _ in range(3000)) if size > 0][:1000]


def test_index_has_the_published_counts(public: list[Instance]) -> None:
    lawrinenko = [instance for instance in public if instance.family in LAWRINENKO]
    assert len(lawrinenko) == 3499
    assert len([instance for instance in public if instance.family in BERNDT]) == 3059
    assert len(set(public)) == len(public)
    counts = [[sum(each.solved_by(n, limit) for each in lawrinenko) for limit in (*LIMITS, 500)] for n in range(3)]
    assert counts == [[2359, 2650, 3488], [2306, 2361, 2469], [2218, 2258, 2296]]
    assert sum(instance.optimum is None for instance in lawrinenko) == 11


@pytest.mark.slow
def test_published_optima_are_possible(public: list[Instance]) -> None:
    for instance in public:
        sizes = sorted(instance.draw(), reverse=True)
        least = max(sizes[0], -(-sum(sizes) // instance.machines), sum(sizes[instance.machines - 1 :][:2]))
        assert instance.optimum is None or least <= instance.optimum < least + sizes[0], instance


RUN = Run("none", "makespan", makespan=10, spread=3, counts=2, bound=Fraction(10), optimal=True, seconds=1.0)


@pytest.mark.parametrize(
    ("wrong", "optimum"),
    [
        ({}, 9),  # proven, and not the optimum
        ({}, 11),  # a plan that is better than the optimum
        ({"bound": Fraction(19, 2), "optimal": False}, 9),  # a bound above the optimum
        ({"bound": Fraction(11), "optimal": False}, None),  # a bound above the plan
        ({"bound": Fraction(9)}, None),  # said to be optimal, with a gap
        ({"balance": "group"}, 10),  # counts that are not even
        ({"objective": "spread"}, 10),  # proven, with another bound
    ],
)
def test_wrong_proof_is_an_error(wrong: dict[str, object], optimum: int | None) -> None:
    with pytest.raises(WrongProofError):
        check(replace(RUN, **wrong), optimum)


def test_right_proof_is_none() -> None:
    check(RUN, 10)
    check(RUN, None)
    check(replace(RUN, optimal=False, bound=Fraction(9)), 9)
    check(replace(RUN, balance="group", counts=1), 9)  # even counts may cost something
    check(replace(RUN, objective="spread", bound=Fraction(3)), 9)


def test_a_wrong_proof_is_reported_with_its_instance() -> None:
    instance = Instance("1", 6, 2, "1..9", 0, 99, (None, None, None))
    with pytest.raises(WrongProofError, match="below the published optimum") as caught:
        measured(instance, counts=False)
    assert any("sizes='1..9', seed=0" in note for note in caught.value.__notes__)


def test_a_value_other_than_the_plans_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def better(problem: Problem, **parameters: object) -> object:
        result = solve(problem, **parameters)
        return replace(result, objective=result.objective - 1)

    assert run([3, 2, 2], 2, 1.0).makespan == 4
    monkeypatch.setattr("benchmarks.pcmax.solve", better)
    with pytest.raises(WrongProofError, match="is said of a plan"):
        run([3, 2, 2], 2, 1.0)


def test_small_public_instance_is_solved(public: list[Instance]) -> None:
    instance = next(each for each in public if each.family == "E1")
    outcome = measured(instance, counts=True)
    assert [made.makespan for made in outcome.runs] == [instance.optimum] * 2
    assert outcome.runs[1] is outcome.runs[0]  # proven: not tried again
    assert outcome.makespan is not None
    assert outcome.spread is not None
    assert outcome.makespan.counts <= 1
    assert outcome.spread.optimal


def test_results_after_the_time_limit_do_not_count() -> None:
    instance = Instance("1", 6, 2, "1..9", 0, 10, (1.5, 3.0, None))
    late, found = replace(RUN, seconds=2.5), replace(RUN, optimal=False)
    missed = replace(RUN, optimal=False, makespan=11)
    even = replace(RUN, balance="group", counts=0, makespan=12, bound=Fraction(12))
    outcomes = [
        Measured(instance, (RUN, RUN), even, replace(even, optimal=False)),
        Measured(instance, (late, RUN), replace(even, makespan=11, seconds=3.0), even),
        Measured(instance, (missed, found), replace(even, makespan=10), even),
        Measured(replace(instance, optimum=None), (found, late), replace(even, makespan=10), even),
    ]
    assert list(tally("1", outcomes)) == [
        "| 1 | 4 | 2 s | 1 | 2 | 4 | 0 | 0 |",
        "| 1 | 4 | 10 s | 3 | 4 | 4 | 4 | 0 |",
    ]
    assert "| 1 | 4 | 3 | 7.50% | 20.00% | 3 |" in list(price(outcomes))


def test_share_of_public_instances_is_drawn_from_a_seed(public: list[Instance]) -> None:
    share = share_of(public, "50", 3)
    assert len(share) == 50
    assert share == share_of(public, "50", 3) != share_of(public, "50", 4)
    places = [public.index(instance) for instance in share]
    assert places == sorted(places)
    assert share_of(public, "all", 3) == share_of(public, "9999", 3) == public


def test_both_kinds_of_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    for text in ("p p_cmax 3 2\n5 7 6 0", "2 \n3 \n 5  7  6 \n"):
        file.write_text(text)
        assert read(file) == ([5, 7, 6], 2)
    file.write_text("2 3 5 7")
    with pytest.raises(ValueError, match="2 sizes of 3"):
        read(file)


def test_instances_of_franca_and_frangioni_come_from_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PCMAX_FOLDER", raising=False)
    assert list(frangioni(0)) == []
    assert "PCMAX_FOLDER" in capsys.readouterr().err
    monkeypatch.setenv("PCMAX_FOLDER", str(tmp_path))
    monkeypatch.setattr("benchmarks.pcmax.UNSOLVED", {(3, 2): {4: 11, 5: 13}})
    for at, sizes in ((4, "5 7 6"), (5, "5 7 7")):
        (tmp_path / f"U_3_0003_2_{at}.txt").write_text(f"2\n3\n{sizes}\n")
    lines = list(frangioni(0))
    assert lines[-1] == "\nProven: 2 of 2; as good as the published one or better: 2."
    assert "| U_3_0003_2_4 | 3 × 2 | 11 | 11 | 11 | yes | " in lines[4]
    (tmp_path / "U_3_0003_2_5.txt").write_text("2\n3\n5 9 9\n")
    with pytest.raises(WrongProofError):
        list(frangioni(0))
    (tmp_path / "U_3_0003_2_5.txt").write_text("3\n3\n5 7 7\n")
    with pytest.raises(ValueError, match="3 machines"):
        list(frangioni(0))


def test_a_group_of_the_loop_keeps_its_plan_by_client_ids() -> None:
    problem = Problem.from_lags({"t": [1, 1, 1, 1]}, {name: ["t"] for name in ("a-1", "b-0", "c-0")})
    keys = [("t", number) for number in range(4)]
    plan = FollowedPlan("g", 1, {"a-0": (keys[0], keys[1]), "x-0": (keys[2],), "b-0": (keys[3],)})
    assert [problem.members[number] for number in by_plan(problem, plan)] == ["a-1", "a-1", "c-0", "b-0"]
