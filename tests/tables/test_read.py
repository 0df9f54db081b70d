"""`evenlag.read` gives the same group from a path, a text, an open file and a DataFrame of any kind."""

import doctest
import io
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenlag
from evenlag import door
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.tables import loading
from evenlag.tables.group import ONLY_OWNERS

ROOT = Path(__file__).parents[2]
BILLING = ROOT / "examples" / "billing.txt"
COLUMNS: dict[str, list[Any]] = {
    "topic": ["orders", "orders", "orders", "paid"],
    "partition": [0, 1, 2, 0],
    "lag": [100_000, 60_000, 50_000, 7],
    "consumer_id": ["c0", "c0", "c1", None],
}
EXPECTED = {
    "group": "group",
    "topics": {"orders": [100_000, 60_000, 50_000], "paid": [7]},
    "members": {
        name: {"topics": ["orders"], "weight": 1, "owned": owned, "generation": None, "max_partitions": None}
        for name, owned in (("c0", [["orders", 0], ["orders", 1]]), ("c1", [["orders", 2]]))
    },
    "pins": [],
    "facts": {
        "left_over": [{"topic": "paid", "partitions": 1, "lag": 7}],
        "assumed": {"subscriptions": ONLY_OWNERS},
    },
}
PANDAS = pd.DataFrame(COLUMNS)
FRAMES = {
    "pandas": PANDAS,
    "pandas of Arrow": PANDAS.convert_dtypes(dtype_backend="pyarrow"),
    "pandas of nullable types": PANDAS.convert_dtypes(),
    "pandas of categories": PANDAS.astype({"topic": "category", "consumer_id": "category"}),
    "pandas with topic and partition as index": PANDAS.set_index(["topic", "partition"]),
    "pandas of texts": PANDAS.astype({"partition": str, "lag": str}),
    "pandas of floats": PANDAS.astype({"lag": float}),
    "pandas of objects": pd.DataFrame({**COLUMNS, "lag": pd.Series([*map(np.int64, COLUMNS["lag"])], dtype=object)}),
    "pandas of decimals": pd.DataFrame({**COLUMNS, "lag": [*map(Decimal, COLUMNS["lag"])]}),
    "Polars": pl.DataFrame(COLUMNS),
    "lazy Polars": pl.LazyFrame(COLUMNS),
    "Arrow": pa.table(COLUMNS),
    "an Arrow batch": pa.record_batch(COLUMNS),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_kind_give_the_same_group(kind: str) -> None:
    problem = evenlag.read(FRAMES[kind])
    assert problem.to_dict() == EXPECTED
    note, left_over = problem.warnings
    assert note == ONLY_OWNERS
    assert left_over.startswith("left over: paid (1 partition, 7 messages): none of its partitions has an owner")


@settings(max_examples=30, deadline=None)
@given(st.permutations(list(range(4))), st.permutations(list(COLUMNS)), st.sampled_from(["pandas", "Polars", "Arrow"]))
def test_neither_the_order_of_rows_nor_of_columns_matters(rows: list[int], names: list[str], kind: str) -> None:
    frame = PANDAS.iloc[rows][names].reset_index(drop=True)
    made = {"pandas": lambda: frame, "Polars": lambda: pl.from_pandas(frame), "Arrow": lambda: pa.table(frame)}[kind]()
    assert evenlag.read(made).to_dict() == EXPECTED


def test_a_result_as_a_table_reads_back_as_the_group_under_its_plan() -> None:
    problem = evenlag.read(PANDAS)
    result = evenlag.solve(problem, time_limit=2)
    for table in (result.to_pandas(), result.to_arrow(), result.to_polars()):
        again = evenlag.read(table, group="group")
        assert again.to_dict()["topics"] == EXPECTED["topics"]
        owned = {name: [tuple(each) for each in entry["owned"]] for name, entry in again.to_dict()["members"].items()}
        assert owned == result.assignment
        assert not any("not read" in warning for warning in again.warnings)


def test_kafkas_column_names_are_accepted() -> None:
    text = PANDAS.rename(columns=lambda name: name.upper().replace("_", "-"))
    assert evenlag.read(text).to_dict() == EXPECTED


def test_paths_texts_and_open_files_give_the_same_group() -> None:
    wanted = evenlag.read(BILLING, group="billing").to_dict()
    text = BILLING.read_text()
    with BILLING.open() as file, BILLING.open("rb") as binary:
        for source in (str(BILLING), text, text.encode(), file, binary, io.StringIO(text), text.encode("utf-16")):
            assert evenlag.read(source, group="billing").to_dict() == wanted


def test_a_problem_file_is_read_from_its_text() -> None:
    path = ROOT / "examples" / "kip-169.json"
    wanted = evenlag.read(path)
    assert evenlag.read(path.read_text()).to_dict() == wanted.to_dict()
    assert evenlag.read(" ".join(path.read_text().split())).to_dict() == wanted.to_dict()
    for members in (["a"], {"a": ["t"]}, "group,consumer_id\ng,a"):
        with pytest.raises(SourceError, match="lists its members itself; omit `members`"):
            evenlag.read(path, members=members)


def test_parquet_is_read_from_an_open_file(tmp_path: Path) -> None:
    PANDAS.assign(group="g").to_parquet(tmp_path / "offsets.parquet")
    with (tmp_path / "offsets.parquet").open("rb") as file:
        assert evenlag.read(file, format="parquet").to_dict() == {**EXPECTED, "group": "g"}


# ---- members, groups, times -----------------------------------------------------------------------------------------


def test_members_by_name_read_everything() -> None:
    problem = evenlag.read(PANDAS.drop(columns="consumer_id"), members=["b", "a"])
    assert problem.members == ("a", "b")
    assert bool(problem.subscribed.all())
    assert problem.warnings == ()


def test_members_by_name_may_name_their_topics() -> None:
    problem = evenlag.read(PANDAS, members={"c0": None, "c1": ["orders"], "new": ("paid",)})
    wanted = evenlag.Problem.from_lags(
        {"orders": [100_000, 60_000, 50_000], "paid": [7]},
        {"c0": ["orders", "paid"], "c1": ["orders"], "new": ["paid"]},
        owned={"c0": [("orders", 0), ("orders", 1)], "c1": [("orders", 2)]},
    )
    assert problem.to_dict() == wanted.to_dict()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_of_members_goes_with_one_of_offsets(make: Any) -> None:
    table = make({"consumer_id": ["c0", "c1"], "topics": [["orders"], None], "weight": [2.0, 1.0]})
    problem = evenlag.read(PANDAS, members=table)
    assert problem.to_dict()["members"]["c0"]["topics"] == ["orders"]
    assert problem.to_dict()["members"]["c1"]["topics"] == ["orders", "paid"]
    assert [float(weight) for weight in problem.weights] == [2, 1]


def many() -> pd.DataFrame:
    other = PANDAS.assign(consumer_id="z", lag=1)
    return pd.concat([PANDAS.assign(group="a"), other.assign(group="b")], ignore_index=True)


def test_one_of_several_groups_is_chosen_by_name() -> None:
    for frame in (many(), pl.from_pandas(many()), pl.from_pandas(many()).lazy(), pa.table(many())):
        assert evenlag.read(frame, group="b").members == ("z",)
        assert evenlag.read(frame, group="a").to_dict() == {**EXPECTED, "group": "a"}
    listed = r"choose one with `group`: a \(lag 210,007, 2 members\), b \(lag 4, 1 member\)"
    with pytest.raises(InvalidProblemError, match="the DataFrame: has 2 groups; " + listed):
        evenlag.read(many())
    with pytest.raises(InvalidProblemError, match="the DataFrame: no group 'c'; the input has a \\(lag"):
        evenlag.read(many(), group="c")
    with pytest.raises(InvalidProblemError, match="the DataFrame: has no row of group 'c'"):
        evenlag.read(pl.from_pandas(many()).lazy(), group="c")


def test_a_group_without_a_name_is_named_by_the_caller() -> None:
    assert evenlag.read(PANDAS, group="billing").group == "billing"
    assert evenlag.read(PANDAS).group == "group"


def timed() -> pd.DataFrame:
    times = [datetime(2026, 1, 31, 12, minute, tzinfo=UTC) for minute in (0, 5, 10)]
    offsets = [PANDAS.assign(snapshot_ts=time, log_end_offset=PANDAS.lag * (n + 1), current_offset=0)
               for n, time in enumerate(times)]  # fmt: skip
    return pd.concat(offsets, ignore_index=True).drop(columns="lag")


def test_of_several_snapshots_the_latest_is_read() -> None:
    for frame in (timed(), pl.from_pandas(timed()), pa.table(timed())):
        problem = evenlag.read(frame)
        assert problem.to_dict()["topics"] == {"orders": [300_000, 180_000, 150_000], "paid": [21]}
        assert "3 snapshots in the file; planning for the latest, 2026-01-31T12:10:00.000Z" in problem.warnings
    assert evenlag.read(timed(), horizon="5m").total_lag == 4 * 210_000
    assert evenlag.read(timed(), horizon="auto").scenario_weights


def test_a_history_can_be_replayed() -> None:
    history = evenlag.read_history(timed(), members=["c0", "c1"])
    assert [each.ts for each in history] == [f"2026-01-31T12:{minute}:00.000Z" for minute in ("00", "05", "10")]
    assert [each.problem.total_lag for each in history] == [210_007, 420_014, 630_021]
    assert evenlag.replay(history, strategies=["range"], capacity=100).snapshots == 3


def test_notes_of_a_history_stay_with_their_snapshot() -> None:
    frame = timed()
    frame = pd.concat([frame, frame.iloc[[0]]]).assign(colour="blue")
    first, second, last = evenlag.read_history(frame)
    assert any("1 row repeats" in note for note in first.problem.warnings)
    assert not any("again" in note for note in second.problem.warnings)
    assert any("ignored columns: colour" in note for note in last.problem.warnings)


def test_notes_and_errors_name_parameters_not_options() -> None:
    text = """# TYPE kafka_consumergroup_lag gauge
kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"} 5
kafka_consumergroup_lag{consumergroup="g",partition="1",topic="t"} 7
kafka_consumergroup_members{consumergroup="g"} 3
"""
    assert any("`members`" in note for note in evenlag.read(text).warnings)
    assert evenlag.read(text, members=["a", "b"]).members == ("a", "b")
    with pytest.raises(InvalidProblemError, match="give it as `members`, and the offsets as the source"):
        evenlag.read("GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS\ng a-1 /h a 0\n")


# ---- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lag": [1, 2, 3.5, 4]}, "the DataFrame, row 2: orders-2: lag is not a whole number: 3.5"),
        ({"lag": ["1", "2", "many", "4"]}, "the DataFrame, row 2: orders-2: lag is not a whole number: 'many'"),
        ({"partition": [0, -1, 2, 0]}, "the DataFrame, row 1: orders: partition is negative: -1"),
        ({"partition": [0, True, 2, 0]}, "row 1: orders: partition is not a whole number: True"),
        ({"topic": ["orders", None, "orders", "paid"]}, "the DataFrame, row 1: topic is missing"),
        ({"topic": ["orders", [7], "orders", "paid"]}, "the DataFrame, row 1: topic is not a text: [7]"),
        ({"consumer_id": [["a"]] * 4}, "the DataFrame, row 0: orders-0: consumer_id is not a text: ['a']"),
        ({"lag": [2**63, 2, 1, 4]}, "row 0"),
        ({"partition": [0, 0, 2, 0]}, "row 1"),
    ],
)
def test_an_error_names_row_and_column(change: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        evenlag.read(
            pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in (COLUMNS | change).items()})
        )
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_number_may_name_a_topic_or_a_member() -> None:
    problem = evenlag.read(PANDAS.assign(topic=7, partition=range(4), consumer_id=[1, 2, 2.0, 2]))
    assert (problem.topics, problem.members) == (("7",), ("1", "2"))


def test_a_missing_column_is_named_with_the_present_ones() -> None:
    with pytest.raises(SourceError, match=r"the DataFrame: no column partition; .*; this one has .*partitions"):
        evenlag.read(PANDAS.rename(columns={"partition": "partitions"}))
    with pytest.raises(SourceError, match=r"no column log_end_offset \(or lag\)"):
        evenlag.read(PANDAS.drop(columns="lag"))
    with pytest.raises(SourceError, match="column lag appears twice"):
        evenlag.read(pd.concat([PANDAS, PANDAS[["lag"]]], axis=1))


def test_unread_columns_are_reported() -> None:
    warnings = evenlag.read(PANDAS.assign(client="x", colour="blue")).warnings
    (note,) = [each for each in warnings if "ignored columns" in each]
    assert note == "the DataFrame: ignored columns: client, colour ('client'; did you mean 'client_id'?)"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (7, "cannot read the offsets from int; give a path, a text, an open file, a DataFrame or kafka"),
        (None, "cannot read the offsets from nothing"),
        ({"topics": {}, "members": {}}, "for a problem document use Problem.from_dict"),
        (PANDAS.lag, "cannot read the offsets from Series"),
        (pa.array([1]), "is not a DataFrame that can be read; got Int64Array"),
        ("no-such-file.csv", "no-such-file.csv: no such file or folder"),
        (io.BytesIO(b"topic\xff\n"), "the file: is not UTF-8 text"),
    ],
)
def test_unreadable_sources_are_refused_with_the_readable_ones(source: Any, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        evenlag.read(source)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"format": "csv"}, SourceError, "the DataFrame: a DataFrame has no format; omit format='csv'"),
        ({"members": ["a", "a"]}, InvalidProblemError, "members: 'a' is listed twice"),
        ({"members": {"a": "orders"}}, InvalidProblemError, "member 'a': its topics must be a list of names"),
        ({"members": 5}, SourceError, "cannot read the members from int"),
        ({"auto_offset_reset": "lates"}, InvalidProblemError, "did you mean 'latest'?"),
        ({"member": ["a"]}, TypeError, "did you mean 'members'?"),
        ({"horizont": 5}, TypeError, "did you mean 'horizon'?"),
    ],
)
def test_wrong_arguments_are_named(keywords: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        evenlag.read(PANDAS, **keywords)
    assert message in str(caught.value)


def test_an_unknown_format_is_answered_with_the_nearest() -> None:
    with pytest.raises(SourceError, match=r"unknown format 'descibe'; .*; did you mean 'describe'\?"):
        evenlag.read(BILLING, format="descibe")
    assert {"csv", "describe", "problem"} <= set(loading.FORMS)


def test_the_docstring_runs() -> None:
    found = doctest.testmod(door)
    assert found.attempted
    assert not found.failed
