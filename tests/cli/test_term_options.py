"""Options for racks, sizes, traffic, budgets and order: their effect, their output, and their errors."""

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenlag
from evenlag.compare.traffic_price import TrafficPrice
from evenlag.errors import InvalidProblemError
from evenlag.figures import number
from evenlag.model.rates import SECOND, horizon_micros
from tests.support.command import evenlag as run
from tests.support.command import refused
from tests.support.racked import crossings, moved_size, owned_now, shop

PROBLEM = shop()


@pytest.fixture
def group(tmp_path: Path) -> Path:
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(PROBLEM.to_dict()))
    return path


def plan_json(path: Path, *words: str) -> dict[str, Any]:
    done = run("plan", path, "--json", *words)
    assert done.returncode == 0, done
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def assignment_of(document: dict[str, Any]) -> dict[str, list[tuple[str, int]]]:
    return {member: [(topic, p) for topic, p in names] for member, names in document["assignment"].items()}


# ---- what options do -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "keywords"),
    [
        (("--rack-price", "7"), {"rack_price": 7}),
        (("--rack-price", "0.5%", "--fetch-from", "leader"), {"rack_price": "0.5%"}),
        (("--max-crossings", "12"), {"max_crossings": 12}),
        (("--max-moved", "40", "--stickiness", "0"), {"max_moved": 40, "stickiness": 0}),
        (("--first", "crossings,moves"), {"first": ["crossings", "moves"]}),
        (("--max-load", "2000", "--first", "moves"), {"max_load": 2000, "first": ["moves"]}),
        (("--price", "crossings=3", "--budget", "moved_size=50"),
         {"prices": {"crossings": 3}, "budgets": {"moved_size": 50}}),
    ],
)  # fmt: skip
def test_a_plan_follows_the_given_terms(group: Path, words: tuple[str, ...], keywords: dict[str, Any]) -> None:
    document = plan_json(group, *words)
    fetch_from = words[-1] if "--fetch-from" in words else "followers"
    problem = PROBLEM.with_pair_data(fetch_from=fetch_from)
    expected = evenlag.solve(problem, **keywords)
    assert (document["status"], expected.status) == ("OPTIMAL", "OPTIMAL")
    assert document["objective"] == pytest.approx(float(expected.objective))
    assert document["costs"] == expected.costs
    assert document["costs"]["crossings"] == crossings(problem, assignment_of(document))
    assert document["costs"]["moved_size"] == moved_size(PROBLEM, assignment_of(document))
    assert document["fetch_from"] == fetch_from
    plain = plan_json(group)
    assert (document["objective"], document["costs"]) != (plain["objective"], plain["costs"]), "the options do nothing"


@pytest.mark.parametrize("capacity", [2, 3.5])
def test_a_drain_time_limits_the_load(group: Path, capacity: float) -> None:
    document = plan_json(group, "--max-drain", "15m", "--capacity", str(capacity), "--first", "moves")
    assert document["max_load"] == 900 * capacity
    assert max(document["loads"].values()) <= 900 * capacity
    assert document["costs"] == evenlag.solve(PROBLEM, max_load=900 * capacity, first=["moves"]).costs


def test_members_of_other_weights_drain_by_their_weight(tmp_path: Path) -> None:
    """A member of weight 3 reads 30 messages a second: 300 in ten seconds."""
    path = tmp_path / "weights.json"
    problem = evenlag.Problem.from_lags({"t": [100] * 5}, {"a": ["t"], "b": ["t"]}, weights={"a": 3, "b": 2})
    path.write_text(json.dumps(problem.to_dict()))
    words = ("--capacity", "10", "--balance", "none")
    assert plan_json(path, "--max-drain", "10s", *words)["loads"] == {"a": 300, "b": 200}
    too_short = "--max-drain 9 s is too short: at least 10 s is needed for the 250 messages of the fullest member"
    refused(run("plan", path, "--max-drain", "9s", *words), too_short)


@pytest.mark.slow
def test_an_audit_takes_a_drain_time(group: Path) -> None:
    words = ("--first", "crossings", "--json")
    done = run("audit", group, "--max-drain", "15m", "--capacity", "2", *words)
    assert (done.returncode, done.stderr) == (0, "")
    same = run("audit", group, "--max-load", "1800", *words)
    rows, wanted = (json.loads(each.stdout)[0]["rows"] for each in (done, same))
    for row in (*rows, *wanted):
        del row["seconds"]
    assert rows == wanted
    assert rows != json.loads(run("audit", group, *words).stdout)[0]["rows"]
    refused(
        run("audit", group, "--max-drain", "15m"), "--max-drain needs the rate at which members read: give --capacity"
    )
    assert "give one of them" in run("audit", group, "--max-drain", "15m", "--max-load", "3").stderr


def test_an_impossible_drain_time_is_refused_with_a_possible_one(group: Path) -> None:
    done = run("plan", group, "--max-drain", "1m", "--capacity", "2")
    refused(done, "--max-drain 60 s is too short: at least")
    assert "max-load" not in done.stderr
    [named] = re.findall(r"raise --max-drain to ([\d.]+ [a-z]+)", done.stderr)
    best = evenlag.solve(PROBLEM, objective="makespan", stickiness=0)
    assert best.status == "OPTIMAL"
    assert 0 <= horizon_micros(named) / SECOND - best.makespan / 2 < 0.6
    document = plan_json(group, "--max-drain", named, "--capacity", "2")
    assert max(document["loads"].values()) == best.makespan
    below = f"{best.makespan / 2 - 0.01:.2f}s"
    refused(run("plan", group, "--max-drain", below, "--capacity", "2"), f"raise --max-drain to {named}")


def test_topics_move_together(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    problem = evenlag.Problem.from_lags({"a": [9, 0, 0, 1], "b": [0, 9, 7, 0]}, {"x": ["a", "b"], "y": ["a", "b"]})
    path.write_text(json.dumps(problem.to_dict()))
    held = assignment_of(plan_json(path, "--together", "a,b"))
    for names in held.values():
        assert {p for topic, p in names if topic == "a"} == {p for topic, p in names if topic == "b"}
    assert {len(names) for names in held.values()} == {4}
    refused(run("plan", path, "--together", "a,c"), "unknown topic 'c'")
    refused(run("plan", path, "--together", "a"), "must have at least two topics")


# ---- sizes and traffic -----------------------------------------------------------------------------------------------


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(shop(move_sizes=None, traffic=None).to_dict()))
    return path


@pytest.mark.parametrize("form", ["csv", "parquet", "list", "object"])
def test_sizes_and_traffic_come_from_files(plain: Path, tmp_path: Path, form: str) -> None:
    """The same as in the problem file; topics that the group does not have are left out."""
    files = []
    for column, amounts in (("move_size", PROBLEM.pairs.move_sizes), ("traffic", PROBLEM.pairs.traffic)):
        assert amounts is not None
        rows = [("t", p, int(amount)) for p, amount in enumerate(amounts)] + [("other", 0, 5)]
        path = tmp_path / f"{column}.{form if form in ('csv', 'parquet') else 'json'}"
        if form == "csv":
            lines = [f"Topic,Partition,group,{column}", *(f"{topic},{p},g,{amount}" for topic, p, amount in rows)]
            path.write_text("\n".join(lines))
        elif form == "parquet":
            columns = dict(zip(("topic", "partition", column), map(list, zip(*rows, strict=True)), strict=True))
            pq.write_table(pa.table(columns), path)
        else:
            listed = [int(amount) for amount in amounts]
            of_topic = listed if form == "list" else {str(p): amount for p, amount in enumerate(listed)}
            path.write_text(json.dumps({"t": of_topic, "other": [1]}))
        files.append(path)
    words = ["--first", "crossings,moves", "--deterministic"]
    result = plan_json(plain, *words, "--move-sizes", str(files[0]), "--traffic", str(files[1]))
    full = tmp_path / "full.json"
    full.write_text(json.dumps(PROBLEM.to_dict()))
    del result["seconds"]
    expected = plan_json(full, *words)
    del expected["seconds"]
    assert result == expected


def test_a_number_for_a_whole_topic(plain: Path) -> None:
    document = plan_json(plain, "--move-sizes", "t=7", "--traffic", "t=3")
    assert document["costs"]["moved_size"] == 7 * document["moves"]
    assert document["costs"]["crossings"] % 3 == 0


def test_partitions_missing_from_a_file_are_reported(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("topic,partition,move_size\nt,0,3\nt,1,\n")
    assert any("has no move_size for t-1 and 7 other partitions" in note for note in plan_json(
        plain, "--move-sizes", str(path))["warnings"])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topic,partition\nt,0\n", "no column move_size; the table needs"),
        ("topic,partition,move_size\nt,0,3\nt,0,4\n", "t-0 has a move_size of 4 here, but of 3 in an earlier row"),
        ("topic,partition,move_size\nt,0,3\nt,x,4\n", "row 3: topic 't': 'x' is not a partition number"),
        ("topic,partition,move_size\nt,-1,3\n", "row 2: topic 't': -1 is not a partition number"),
        ("topic,partition,move_size\n,0,3\n", "row 2: a topic needs a name"),
        ("topic,partition,move_size\nt,0,2.5\n", "--move-sizes of t-0: must be a whole number >= 0, not '2.5'"),
        ("topic,partition,move_size\nt,0,-1\n", "must lie between 0 and 2^53 - 1, not -1"),
        ('{"t": 3}', "topic 't' must have a list, or an object of partition to number"),
        ("[3]", "must be an object such as"),
        ('{"t": [1', "invalid JSON"),
    ],
)
def test_invalid_files_of_sizes_are_refused(plain: Path, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sizes"
    path.write_text(text)
    done = run("plan", plain, "--move-sizes", path)
    refused(done, message)
    assert str(path) in done.stderr


def test_files_of_sizes_are_not_overwritten(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("topic,partition,move_size\nt,0,3\n")
    refused(run("plan", plain, "--move-sizes", path, "--out", path), "is also the input")


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-drain", "15m", "--max-load", "3"), "give one of them"),
        (("--budget", "crossings=many"), "must be a whole number"),
        (("--budget", "crossings"), "write NAME=VALUE"),
        (("--price", "=3"), "write NAME=VALUE"),
        (("--move-sizes", "t=a"), "is not TOPIC=N"),
        (("--traffic-price", "0.01"), "such as 0.01/GB"),
        (("--traffic-price", "-1/GB"), "such as 0.01/GB"),
        (("--fetch-from", "anywhere"), "leader"),
    ],
)
def test_conflicting_options_are_wrong_usage(group: Path, words: tuple[str, ...], message: str) -> None:
    done = run("plan", group, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-drain", "15m"), "--max-drain needs the rate at which members read: give --capacity"),
        (("--first", "night"), "not 'night'"),
        (("--price", "night=3"), "not 'night'"),
        (("--rack-price", "dear"), "the price of crossings must be messages >= 0"),
        (("--rack-price", "3", "--price", "crossings=4"), "--rack-price is 3, but prices has crossings: 4"),
        (("--price", "moved_size=3", "--stickiness", "2"), "stickiness is 2, but prices has moved_size: 3"),
        (("--max-moved", "3", "--budget", "moved_size=4"), "--max-moved is 3, but budgets has moved_size: 4"),
        (("--max-crossings", "0", "--max-moved", "0"), "needs 49 with --max-crossings 0: allow that, or raise"),
        (("--move-sizes", "u=3"), "unknown topic 'u'"),
    ],
)
def test_impossible_terms_are_one_line(group: Path, words: tuple[str, ...], message: str) -> None:
    refused(run("plan", group, *words), message)


def test_an_option_overrides_the_replicas_of_a_problem_file(tmp_path: Path) -> None:
    path = tmp_path / "leader.json"
    path.write_text(json.dumps(shop(2, fetch_from="leader").to_dict()))
    for words, fetch_from in (((), "leader"), (("--fetch-from", "followers"), "followers")):
        document = plan_json(path, *words)
        assert document["fetch_from"] == fetch_from
        wanted = crossings(shop(2, fetch_from=fetch_from), assignment_of(document))
        assert document["costs"]["crossings"] == wanted


def test_unknown_racks_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(shop(racks=None).to_dict()))
    document = plan_json(path, "--rack-price", "100")
    assert "crossings are not counted: racks of members and of partitions are needed" in document["warnings"]
    assert "crossings" not in document["costs"]
    refused(
        run("plan", path, "--traffic-price", "1/GB"), "pricing traffic needs the racks of members and of partitions"
    )


# ---- reports ---------------------------------------------------------------------------------------------------------


def test_the_report_states_the_objective(group: Path) -> None:
    words = ("--rack-price", "3", "--stickiness", "0.5", "--fetch-from", "leader")
    document = plan_json(group, *words)
    output = run("plan", group, *words).stdout
    costs = document["costs"]
    base = document["objective"] - 3 * costs["crossings"] - costs["moved_size"] / 2
    assert base == document["spread"]
    assert costs["crossings"]
    assert costs["moved_size"]
    assert (
        f"spread {number(base)} + {costs['moved_size']} moved size × 0.5 messages + {costs['crossings']} crossings × "
        f"3 messages = "
        f"{number(document['objective'])}"
    ) in output
    today = crossings(PROBLEM.with_pair_data(fetch_from="leader"), owned_now(PROBLEM))
    traffic = sum(PROBLEM.to_dict()["traffic"]["t"])
    assert f"crossings: {costs['crossings']} of {traffic} of traffic across racks, today {today}\n" in output
    assert f"moved size {costs['moved_size']} of {sum(PROBLEM.to_dict()['move_sizes']['t'])}\n" in output
    assert re.search(r"^ c0 +zone-a ", output, re.MULTILINE)
    assert re.search(r"^ move +from +to +racks +lag", output, re.MULTILINE)


def test_the_report_states_the_first_criteria(group: Path) -> None:
    words = ("--first", "crossings,moves")
    document, output = plan_json(group, *words), run("plan", group, *words).stdout
    assert document["first"] == ["crossings", "moved_size"]
    costs = document["costs"]
    assert document["cost_bounds"] == {name: costs[name] for name in document["first"]}
    assert f"first: crossings {costs['crossings']}, proven; moved_size {costs['moved_size']}, proven\n" in output


def test_traffic_is_priced_by_the_month(group: Path, tmp_path: Path) -> None:
    """A member that reads 1 GB a second across racks for 730 hours at 0.01: 26,280."""
    problem = evenlag.Problem.from_lags(
        {"t": [5]}, {"c0": ["t"]}, owned={"c0": [("t", 0)]}, racks={"c0": "a"}, partition_racks={"t": [["b"]]},
        traffic={"t": [10**9]},
    )  # fmt: skip
    path = tmp_path / "one.json"
    path.write_text(json.dumps(problem.to_dict()))
    cost = plan_json(path, "--traffic-price", "0.01/GB")["traffic_cost"]
    assert cost == {"price": "0.01/GB", "planned_month": 26280.0, "today_month": 26280.0}
    output = run("plan", path, "--traffic-price", "0.01/GB").stdout
    assert "traffic across racks costs 26,280 per month, today 26,280 (at 0.01/GB)" in output
    free, priced = plan_json(group), plan_json(group, "--traffic-price", "9/kB")
    assert free["assignment"] == priced["assignment"]


@pytest.mark.parametrize(
    ("text", "per_byte"),
    [
        ("0.01/GB", Fraction(1, 10**11)), ("2/TiB", Fraction(2, 2**40)), ("1 / mb", Fraction(1, 10**6)),
        ("3/B", Fraction(3)), ("0/KiB", Fraction(0)),
    ],
)  # fmt: skip
def test_prices_of_traffic_are_read(text: str, per_byte: Fraction) -> None:
    assert TrafficPrice.of(text).per_byte == per_byte


@pytest.mark.parametrize("text", ["", "/GB", "1/", "1/G", "1%/GB", "-1/GB", "x/GB", "1/GB/h"])
def test_invalid_prices_of_traffic_are_refused(text: str) -> None:
    with pytest.raises(InvalidProblemError, match=r"such as 0\.01/GB"):
        TrafficPrice.of(text)
