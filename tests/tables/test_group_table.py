"""Checked rows in any order become groups, as plain Python makes them; and ordinary groups become columns."""

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.model.from_rows import Member
from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.rates import time_micros
from evenlag.tables.column_names import matched
from evenlag.tables.group import OFFSET_FIELDS, UNKNOWN, GroupRows
from evenlag.tables.group_table import GroupTable
from evenlag.tables.growth import predict_lags
from evenlag.tables.ordinary_groups import OrdinaryGroups
from evenlag.tables.pair_columns import NO_PAIR_COLUMNS
from evenlag.tables.rules import BEFORE_START, BELOW_ZERO, BEYOND_END, CheckedRows, check_rows
from tests.support.fleet_tasks import arrow
from tests.support.growing import record, times_of

Row = dict[str, Any]
COUNTS = ("beyond_end", "before_start", "below_zero", "rejected_rows")
TIMES = ("2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01T01:00Z", "noon")
PARTITIONS = st.fixed_dictionaries(
    {
        "snapshot_ts": st.sampled_from(TIMES),
        "group": st.sampled_from(["g", "ä"]),
        "topic": st.sampled_from(["orders", "Orders", "é"]),
        "partition": st.integers(0, 3),
        "log_start_offset": st.sampled_from([None, 0, 5]),
        "log_end_offset": st.just(9),
        "current_offset": st.sampled_from([None, 2, 9, 12, -1]),
        "consumer_id": st.sampled_from(["a", "b", "gone", None]),
        "replica_racks": st.sampled_from([None, None, ["x", "y"], ["", "y"], []]),
        "move_size": st.sampled_from([None, None, 0, 5]),
        "traffic": st.sampled_from([None, None, 1, 2**53 - 1]),
    }
)
MEMBERS = st.fixed_dictionaries(
    {
        "snapshot_ts": st.sampled_from(TIMES),
        "group": st.sampled_from(["g", "ä", "silent"]),
        "consumer_id": st.sampled_from(["a", "b", "c", "d"]),
        "topics": st.sampled_from([None, None, [], ["orders"], ["é", "orders"]]),
        "weight": st.sampled_from([None, None, 2.0]),
        "max_partitions": st.sampled_from([None, None, 3]),
        "generation": st.just(None),
        "assignor": st.sampled_from([None, "range", "sticky"]),
        "rack": st.sampled_from([None, "x", "z", ""]),
    }
)


def check(rows: Any, kind: Any = "offsets", **options: Any) -> CheckedRows:
    table = arrow(rows)
    return check_rows(table, matched(table.column_names, kind, "table"), kind, **options)


def groups_of(offsets: Any, members: Any = None, **options: Any) -> GroupTable:
    return GroupTable(check(offsets), None if members is None else check(members, "members"), **options)


def instant(ts: str) -> Any:
    micros = time_micros(ts)
    return ts if micros is None else micros


def groups_by_plain_python(offsets: CheckedRows, rows: list[Row], members: CheckedRows, others: list[Row]) -> Row:
    """Group rows by what was found of each, one row after another."""
    found: dict[Any, Row] = {}
    for key in {(instant(row["snapshot_ts"]), row["group"]) for row in rows}:
        own = [n for n, row in enumerate(rows) if (instant(row["snapshot_ts"]), row["group"]) == key]
        kept = [n for n in own if offsets.usable[n]]
        kept.sort(key=lambda n: (rows[n]["topic"], rows[n]["partition"]))
        left = {rows[n]["consumer_id"] for n in own if n not in kept} - {None}
        entries = [
            others[m] for m in range(len(others))
            if members.usable[m] and (instant(others[m]["snapshot_ts"]), others[m]["group"]) == key
        ]  # fmt: skip
        found[key] = {
            "rows": [
                (rows[n]["topic"], rows[n]["partition"], offsets.values["lag"].data[n], rows[n]["consumer_id"])
                for n in kept
            ],
            "offsets": [[UNKNOWN if rows[n][name] is None else rows[n][name] for n in kept] for name in OFFSET_FIELDS],
            "pairs": [pair_facts(rows[n]) for n in kept],
            "members": tuple(
                Member(**{name: value for name, value in row.items() if name not in ("snapshot_ts", "group")})
                for row in sorted(plain_members(entries), key=lambda row: str(row["consumer_id"]))
            ),
            "left_out": left,
            "beyond_end": sum(offsets.clamped[n] == BEYOND_END for n in kept),
            "before_start": sum(offsets.clamped[n] == BEFORE_START for n in kept),
            "below_zero": sum(offsets.clamped[n] == BELOW_ZERO for n in kept),
            "rejected_rows": len(own) - len(kept),
        }  # fmt: skip
    return found


def plain_members(entries: list[Row]) -> list[Row]:
    return [
        row | {"topics": row["topics"] if row["topics"] is None else tuple(row["topics"]), "rack": row["rack"] or None}
        for row in entries
    ]


def pair_facts(row: Row) -> tuple[Any, ...]:
    racks = row["replica_racks"]
    return None if racks is None else tuple(racks), row["move_size"], row["traffic"]


def facts_of(group: GroupRows) -> Row:
    names = [group.topics[t] for t in group.topic_of.tolist()]
    rows = list(zip(names, group.partition_ids.tolist(), group.lags.tolist(), group.owners, strict=True))
    return {
        "rows": rows,
        "offsets": None if group.offsets is None else group.offsets.tolist(),
        "pairs": [group.pairs.row(p) for p in range(len(group.lags))],
        "left_out": set(group.left_out),
        **{name: getattr(group, name) for name in ("members", *COUNTS)},
    }


@given(st.lists(PARTITIONS, min_size=1, max_size=30), st.lists(MEMBERS, min_size=1, max_size=12))
def test_groups_equal_those_of_plain_python(partitions: list[Row], members: list[Row]) -> None:
    offsets, others = check(partitions), check(members, "members")
    table = GroupTable(offsets, others)
    wanted = groups_by_plain_python(offsets, partitions, others, members)
    found = list(table.groups(offsets=True))
    assert [(group.snapshot_ts, group.group) for group in found] == table.keys
    assert {(instant(str(ts)), group) for ts, group in table.keys} == set(wanted)
    assert len(table) == len(wanted)
    names = [group for _, group in table.keys]
    assert names == sorted(names)
    for g, group in enumerate(found):
        assert facts_of(group) == wanted[instant(str(group.snapshot_ts)), group.group]
        assert table.notes(g) == group.notes
        assert facts_of(table.group(g))["offsets"] is None


@given(st.lists(PARTITIONS, min_size=1, max_size=30), st.lists(MEMBERS, max_size=12), st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[Row], members: list[Row], chance: random.Random) -> None:
    found = []
    for order, others in ((rows, members), (chance.sample(rows, len(rows)), chance.sample(members, len(members)))):
        table = groups_of(order, others or None)
        found.append([(key, facts_of(group)) for key, group in zip(table.keys, table.groups(), strict=True)])
    assert found[0] == found[1]


def test_snapshots_of_a_group_are_in_order_of_time() -> None:
    times = ["2026-01-01T10:00+02:00", "2026-01-01T09:00Z", "2025-12-31", "noon", "9", "10"]
    row = {"group": "g", "topic": "t", "partition": 0, "lag": 7}
    table = groups_of([row | {"snapshot_ts": ts} for ts in times] + [row | {"snapshot_ts": "1", "group": "a"}])
    assert table.keys == [
        ("1", "a"), ("noon", "g"), ("9", "g"), ("10", "g"), ("2025-12-31", "g"), ("2026-01-01T10:00+02:00", "g"),
        ("2026-01-01T09:00Z", "g"),
    ]  # fmt: skip


PLAIN: Row = {
    "snapshot_ts": "2026-01-01", "group": "g", "topic": "orders", "partition": 0, "lag": 7, "consumer_id": "a",
}  # fmt: skip


def test_without_a_members_table_the_owners_are_the_members() -> None:
    rows = [
        PLAIN,
        PLAIN | {"partition": 1, "consumer_id": "b", "lag": 2**62 + 1},
        PLAIN | {"group": "h", "consumer_id": None},
    ]
    first, second = groups_of(rows).groups()
    assert (first.members, first.owners_seen, first.left_out) == (None, ["a", "b"], {"b"})  # also of a rejected row
    assert first.problem().members == ("a", "b")
    assert first.partition_ids.tolist() == [0]
    assert second.owners_seen == []
    assert next(groups_of(rows, [PLAIN | {"group": "other"}]).groups()).members == ()  # nobody is in the table


def test_a_group_whose_rows_are_all_rejected_is_kept() -> None:
    (group,) = groups_of([PLAIN | {"topic": None}]).groups()
    assert (group.topics, len(group.lags), group.rejected_rows) == ((), 0, 1)


def test_rows_without_a_group_or_a_time_are_no_group() -> None:
    lacking = [PLAIN | {"group": None}, PLAIN | {"snapshot_ts": None}, PLAIN | {"snapshot_ts": None, "group": "h"}]
    assert groups_of([PLAIN, *lacking]).keys == [("2026-01-01", "g")]


def test_rows_of_one_group_need_neither() -> None:
    rows = [{name: PLAIN[name] for name in PLAIN if name not in ("snapshot_ts", "group")}]
    checked = check(pa.table({"group": ["one"], **{name: [rows[0][name]] for name in rows[0]}}), timed=False)
    assert GroupTable(checked).keys == [(None, "one")]


def test_what_a_members_table_tells_beyond_plans_comes_on_request() -> None:
    member = {
        "snapshot_ts": "2026-01-01",
        "group": "g",
        "consumer_id": "a",
        "protocol": "classic",
        "assignment_user_data": "7",
    }
    for told in (False, True):
        (group,) = groups_of([PLAIN], [member], told=told).groups()
        [one] = group.members or ()
        assert (one.registration is not None) == told
        assert one.registration is None or (one.registration.protocol, one.registration.assignment_user_data) == (
            "classic",
            7,
        )


def test_racks_of_one_group_do_not_reach_another() -> None:
    told = PLAIN | {"replica_racks": ["a"], "move_size": 3, "traffic": 4}
    groups = [group.problem().pairs for group in groups_of([told, PLAIN | {"group": "silent"}]).groups()]
    assert [bool(pairs) for pairs in groups] == [True, False]
    (group,) = groups_of([PLAIN]).groups()
    assert group.pairs is NO_PAIR_COLUMNS
    assert group.problem().pairs is NO_PAIR_DATA


def test_log_ends_belong_to_the_next_snapshot_of_their_group() -> None:
    rows = record("g", 6)
    times = times_of(rows)
    unknown = {"current_offset": None, "consumer_id": None, "log_only": "true"}
    alone = [times[n] for n in (0, 1, 3, 5)]
    marked = [row | unknown if row["snapshot_ts"] in alone else row for row in rows]
    other = record("h", 6)
    table = groups_of([*marked, *other])
    assert [key for key in table.keys if key[1] == "g"] == [(times[2], "g"), (times[4], "g")]
    for g, (ts, group) in enumerate(table.keys):
        past = table.group(g).past
        wanted = {times[2]: times[:2], times[4]: [times[3]]}.get(ts, []) if group == "g" else []
        assert [ends.micros for ends in past] == [time_micros(each) for each in wanted]
        for ends, time in zip(past, wanted, strict=True):
            found = {
                (ends.topics[t], p): end for t, p, end in zip(ends.topic_of, ends.partition_ids, ends.ends, strict=True)
            }
            assert found == {
                (row["topic"], row["partition"]): row["log_end_offset"] for row in rows if row["snapshot_ts"] == time
            }


def test_predicted_lags_are_counted_by_group() -> None:
    row = {"group": "g", "topic": "t", "log_end_offset": 9, "current_offset": 2}
    rows = [row | {"snapshot_ts": ts, "partition": p} for ts, several in (("2026-01-01", 2), ("2026-01-02", 3))
            for p in range(several)]  # fmt: skip
    checked = check(rows)
    assert [(each.predicted, each.unrated) for each in GroupTable(checked).groups()] == [(0, 0)] * 2
    predict_lags(checked, 60)
    table = GroupTable(checked)
    assert [(each.predicted, each.unrated) for each in table.groups()] == [(0, 2), (2, 1)]
    assert [table.notes(g) for g in range(2)] == [(*each.notes, *each.problem().warnings) for each in table.groups()]
    assert "2 lags are predicted" in " ".join(table.notes(1))


# ---- columns of ordinary groups --------------------------------------------------------------------------------------


@given(st.lists(PARTITIONS, min_size=1, max_size=40), st.none() | st.lists(MEMBERS, max_size=12))
def test_columns_are_those_of_the_problems_of_ordinary_groups(rows: list[Row], members: list[Row] | None) -> None:
    table = groups_of(rows, members)
    by_columns = OrdinaryGroups(table)
    ordinary = np.flatnonzero(by_columns.chosen)
    columns = by_columns.columns(ordinary)
    shown = np.concatenate([columns.starts, ordinary * 0])  # both exist without any group
    assert shown[0] == 0
    for g in range(len(table)):
        group = table.group(g)
        assert bool(by_columns.chosen[g]) == is_ordinary(group)
    for k, g in enumerate(ordinary.tolist()):
        group = table.group(g)
        problem = group.problem()
        here = slice(int(columns.starts[k]), int(columns.starts[k + 1]))
        assert columns.lags[here].tolist() == problem.lags.tolist()
        assert columns.owner[here].tolist() == problem.owner.tolist()
        assert columns.members[k] == len(problem.members)
        assert columns.topic_of[here].tolist() == table.topic_of[table.row(g)].tolist()
        assert by_columns.strangers[g] == sum(each is not None and each not in problem.members for each in group.owners)
        assert not problem.scenario_weights
        some = (np.arange(len(problem.lags)) * 7 + g) % len(problem.members)
        named = [table.names[code] for code in by_columns.member_codes(np.array([g]), some).tolist()]
        assert named == [problem.members[m] for m in some.tolist()]
        plan = Plan(problem, some.astype(np.int32))
        assert by_columns.crossings(np.array([g]), some) == [crossings_of(plan)]


def is_ordinary(group: GroupRows) -> bool:
    if not group.topics or not (members := group.owners_seen if group.members is None else group.members):
        return False
    if group.members is None and group.unowned:  # topics that are left over
        return False
    pairs = group.problem().pairs
    told = [each for each in members if isinstance(each, Member)]
    plain = all(each.max_partitions is None for each in told) and len({each.weight for each in told}) <= 1
    asked = {None if each.topics is None else frozenset(each.topics) for each in told}
    same = len(asked) <= 1 and asked <= {None, frozenset(group.topics)}
    return plain and same and pairs.move_sizes is None and pairs.traffic is None


def crossings_of(plan: Plan) -> int | None:
    """Count by the racks of the problem; None where they are unknown."""
    racks, there = plan.problem.pairs.racks, plan.problem.pairs.partition_racks
    if not any(racks or ()) or not any(there or ()):
        return None
    count = 0
    for p, m in enumerate(plan.member_of.tolist()):
        readable = there[p] or ()
        count += bool(m != NOBODY and racks[m] and any(readable) and racks[m] not in readable)
    return count


def test_a_column_that_the_columns_of_groups_do_not_know_leaves_a_group_to_itself() -> None:
    """Only a group with a value of the new column is planned alone."""
    members = [{"snapshot_ts": PLAIN["snapshot_ts"], "group": group, "consumer_id": "a"} for group in "gh"]
    table = groups_of([PLAIN | {"group": group} for group in "gh"], members)
    assert OrdinaryGroups(table).chosen.tolist() == [True, True]
    table.planned["paused"] = [None, True]
    assert OrdinaryGroups(table).chosen.tolist() == [True, False]


def test_lags_that_sum_beyond_64_bits_are_no_columns() -> None:
    rows = [PLAIN | {"partition": p, "lag": 2**61 - 1 + p} for p in range(2)]
    assert OrdinaryGroups(groups_of(rows)).chosen.tolist() == [False]
    assert OrdinaryGroups(
        groups_of([PLAIN | {"lag": 2**60}, PLAIN | {"lag": 2**59, "partition": 1}])
    ).chosen.tolist() == [True]


@pytest.mark.parametrize("seed", range(2))
def test_rows_of_some_groups_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    rows = [PLAIN | {"group": f"g{g}", "partition": p, "lag": 10 * g + p} for g in range(6) for p in range(g + 1)]
    table = groups_of(rng.sample(rows, len(rows)))
    chosen = np.array(rng.sample(range(6), 4))
    assert table.lags[OrdinaryGroups(table).rows_of(chosen)].tolist() == [
        10 * g + p for g in chosen.tolist() for p in range(g + 1)
    ]
    assert table.sizes.tolist() == [1, 2, 3, 4, 5, 6]
    assert OrdinaryGroups(table).columns(chosen).sizes.tolist() == [g + 1 for g in chosen.tolist()]
