"""Plans, audits and replays from answers of monitors."""

import json
from pathlib import Path

import pytest

from evenlag.errors import InvalidProblemError
from evenlag.tables.read import read_group, read_snapshots
from tests.support.command import evenlag, refused
from tests.support.monitors import ANSWERS, PLAIN, RECORDED

QUERY = "kafka_consumergroup_lag", "kafka_consumergroup_current_offset"


def write_answer(folder: Path, text: str, name: str = "answer.txt") -> Path:
    (path := folder / name).write_text(text)
    return path


def matrix(steps: int, members: int | None = None) -> str:
    """Prometheus' answer of two partitions: 60 messages a minute come in, 30 are read."""

    def series(labels: dict[str, str], first: int, by: int) -> dict[str, object]:
        return {"metric": labels, "values": [[60 * step, str(first + by * step)] for step in range(steps)]}

    result = []
    for partition in ("0", "1"):
        labels = {"consumergroup": "g", "topic": "t", "partition": partition}
        result.append(series({"__name__": QUERY[0], **labels}, 100, 30))
        result.append(series({"__name__": QUERY[1], **labels}, 1000, 30))
    if members is not None:
        result.append(series({"__name__": "kafka_consumergroup_members", "consumergroup": "g"}, members, 0))
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


@pytest.mark.parametrize("name", ANSWERS)
def test_the_recorded_answers_give_the_same_group(name: str) -> None:
    problem, notes = read_group(RECORDED / name, group="billing")
    assert problem.total_lag == 2125
    assert (len(problem.partitions), len(problem.members)) == (7, 2)
    assert not any("shift" in note for note in notes)


def test_a_group_without_known_members_is_refused_until_they_are_named(tmp_path: Path) -> None:
    path = write_answer(tmp_path, "\n".join(PLAIN.format(number, 10) for number in range(4)))
    with pytest.raises(InvalidProblemError, match=r"answer.txt: shows neither the members of group 'g'.*--members"):
        read_group(path)
    members = write_answer(tmp_path, "group,consumer_id\ng,a\ng,b\n", "members.csv")
    problem, notes = read_group(path, members)
    assert list(problem.members) == ["a", "b"]
    assert any("plan is computed without it" in note for note in notes)


def test_named_members_replace_counted_ones(tmp_path: Path) -> None:
    path = write_answer(tmp_path, matrix(3, members=3))
    assert len(read_group(path)[0].members) == 3
    members = write_answer(tmp_path, "group,consumer_id\ng,a\ng,b\n", "members.csv")
    problem, notes = read_group(path, members)
    assert list(problem.members) == ["a", "b"]
    assert not any("member-1" in note for note in notes)


def test_a_range_is_a_record_with_rates(tmp_path: Path) -> None:
    path = write_answer(tmp_path, matrix(4, members=2), "day.json")
    snapshots, _ = read_snapshots(path)
    assert [sum(snapshot.problem.lags.tolist()) for snapshot in snapshots] == [200, 260, 320, 380]
    problem, _ = read_group(path, horizon=60)
    assert problem.total_lag == 380 + 2 * 60
    shown = json.loads(evenlag("replay", path, "--capacity", 1, "--json").stdout)
    assert shown["snapshots"] == 4


def test_a_plan_from_counted_members_is_a_fresh_one() -> None:
    shown = json.loads(evenlag("plan", RECORDED / "kafka_exporter.prom", "--group", "billing", "--json").stdout)
    assert shown["payoff"] is None
    assert sorted(shown["loads"].values()) == [1035, 1090]
    report = json.loads(evenlag("plan", RECORDED / "burrow.json", "--group", "billing", "--json").stdout)
    assert report["payoff"]["today"] == 1065


def test_other_metrics_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = write_answer(tmp_path, '# TYPE up gauge\nup{job="kafka"} 1\n', "metrics.txt")
    refused(evenlag("plan", path), "kafka_exporter, KMinion, Redpanda")
