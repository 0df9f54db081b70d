"""A plan as a table: for pandas, Arrow and Polars, a row a partition, whatever the plan."""

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenlag
from evenlag.model.plan import Plan
from tests.support.problems import alike

COLUMNS = ["topic", "partition", "lag", "previous_member", "member", "move"]
PROBLEM = evenlag.Problem.from_lags(
    {"t": {0: 2**62, 3: 5, 7: 0}, "u": [4], "deaf": [9]},
    {"a": ["t"], "b": ["t", "u"]},
    owned={"a": [("t", 0)], "b": [("t", 3)]},
)
PLAN = Plan.from_assignment(PROBLEM, {"a": [("t", 0), ("t", 3)], "b": [("t", 7), ("u", 0)]})
ROWS = [
    ("deaf", 0, 9, None, None, "unassigned"),
    ("t", 0, 2**62, "a", "a", "kept"),
    ("t", 3, 5, "b", "a", "moved"),
    ("t", 7, 0, None, "b", "forced"),
    ("u", 0, 4, None, "b", "forced"),
]


def test_pandas_has_a_row_for_each_partition() -> None:
    frame = PLAN.to_pandas()
    assert list(frame.columns) == COLUMNS
    assert list(frame.itertuples(index=False, name=None)) == ROWS
    assert [str(kind) for kind in frame.dtypes] == ["object", "int32", "int64", "object", "object", "object"]


def test_arrow_has_a_row_for_each_partition() -> None:
    table = PLAN.to_arrow()
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("topic", "string"), ("partition", "int32"), ("lag", "int64"), ("previous_member", "string"),
        ("member", "string"), ("move", "string"),
    ]  # fmt: skip
    assert [tuple(row[name] for name in COLUMNS) for row in table.to_pylist()] == ROWS


def test_polars_has_a_row_for_each_partition() -> None:
    frame = PLAN.to_polars()
    assert frame.columns == COLUMNS
    assert frame.rows() == ROWS


def test_a_result_has_the_table_of_its_plan() -> None:
    result = evenlag.solve(PROBLEM, time_limit=2)
    assert result.to_arrow().equals(result.plan.to_arrow())
    assert result.to_pandas().equals(result.plan.to_pandas())
    assert result.to_polars().equals(result.plan.to_polars())


@pytest.mark.parametrize("name", ["to_pandas", "to_arrow", "to_polars"])
def test_without_partitions_the_columns_are_there(name: str) -> None:
    table = getattr(evenlag.solve(evenlag.Problem.from_lags({}, ["a"])), name)()
    assert list(getattr(table, "column_names", table.columns)) == COLUMNS
    assert len(table) == 0
    full = getattr(PLAN, name)()
    kinds = [getattr(each, "dtypes", getattr(each, "schema", None)) for each in (table, full)]
    assert list(kinds[0]) == list(kinds[1])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.data())
def test_moves_of_the_table_are_those_of_the_plan(lags: list[int], data: Any) -> None:
    owners = data.draw(st.lists(st.sampled_from("abz"), min_size=len(lags), max_size=len(lags)))
    owned = {name: [("t", p) for p, owner in enumerate(owners) if owner == name] for name in "ab"}
    problem = alike(lags, "ab", owned=owned)
    plan = evenlag.assign(problem, "roundrobin")
    moves = plan.to_arrow()["move"].to_pylist()
    assert moves.count("moved") == plan.moves
    assert moves.count("forced") == plan.forced_moves
    assert moves.count("unassigned") == len(plan.unassigned)


@pytest.mark.parametrize(("name", "package"), [("pandas", "pandas"), ("arrow", "pyarrow"), ("polars", "polars")])
def test_without_its_package_a_table_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"to_{name}\(\) needs {package}, .*: pip install {package}"):
        getattr(PLAN, f"to_{name}")()


@pytest.mark.parametrize("fetch_from", ["followers", "leader"])
def test_racks_and_crossings_are_columns_where_racks_are_known(fetch_from: Any) -> None:
    problem = evenlag.Problem.from_lags(
        {"t": [5, 4, 3, 2, 1, 1], "deaf": [1]}, {"a": ["t"], "b": ["t"]}, racks={"a": "x"},
        partition_racks={"t": [["x", "y"], ["y", "x"], ["y"], None, ["", "x"], ["", "y"]], "deaf": [["x"]]},
        fetch_from=fetch_from,
    )  # fmt: skip
    everything = {"a": [("t", p) for p in range(6)], "b": []}
    plan = Plan.from_assignment(problem, everything)
    leader = fetch_from == "leader"  # whose rack is not known of the last two
    crossing = [None, False, leader, True, None, None if leader else False, None if leader else True]
    for table in (plan.to_arrow(), plan.to_polars().to_arrow()):
        assert table["member_rack"].to_pylist() == [None, *"xxxxxx"]
        assert table["crossing"].to_pylist() == crossing
    frame = plan.to_pandas()
    assert list(frame.columns) == [*COLUMNS, "member_rack", "crossing"]
    assert frame["crossing"].tolist() == crossing
    moved = Plan.from_assignment(problem, {"a": [], "b": everything["a"]})
    assert moved.to_arrow()["crossing"].to_pylist() == [None] * 7, "the rack of b is not known"
    result = evenlag.solve(problem, rack_price=3)
    assert sum(each is True for each in result.to_arrow()["crossing"].to_pylist()) == result.crossings
    again = evenlag.read(result.to_pandas())  # which is a table of offsets too
    assert again.partitions == problem.partitions
    assert not any("member_rack" in note or "crossing" in note for note in again.warnings)
