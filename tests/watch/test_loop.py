"""The loop with a scripted cluster and plans in files."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from evenlag.errors import EvenlagError, InvalidProblemError, SourceError
from evenlag.live.followed_plan import FollowedPlan, PlanFile
from evenlag.tables.columns import MEMBERS, OFFSETS
from evenlag.tables.every_group import Choice, of_rows
from evenlag.watch import rounds
from evenlag.watch.board import Board
from evenlag.watch.exposition import text_of
from evenlag.watch.inputs import Seen
from evenlag.watch.loop import Loop
from evenlag.watch.loop_decision import Caution, Reason
from evenlag.watch.rounds import Terminated, Watcher
from evenlag.watch.sole_writer import FileWriter
from evenlag.watch.standing import Asked, Standing, standing_of

LEAST = 600.0
START = 1_750_000_000.0  # seconds since 1970
UNEVEN, EVEN = "aabb", "abba"  # owners of four partitions
LAGS = (100, 60, 50, 10)


@dataclass
class Cluster:
    """Groups of Java's PlanAssignor, by their owners; an exception stands for one that cannot be read."""

    owners: dict[str, str | Exception]
    state: str = "Stable"
    protocol: str = "classic"
    lags: tuple[int, ...] = LAGS
    before_reading: Callable[[], None] = lambda: None
    reads: int = 0

    def read(self, choice: Choice, _warn: Callable[[str], None]) -> Iterator[Seen]:
        self.before_reading()
        self.reads += 1
        for name in choice(sorted(self.owners)):
            found = self.owners[name]
            if isinstance(found, Exception):
                yield Seen(name, InvalidProblemError(str(found)), START)
                continue
            offsets: list[Any] = [
                {column.name: None for column in OFFSETS}
                | {"snapshot_ts": "2026-01-31T12:00:00Z", "group": name, "topic": "orders", "partition": number}
                | {"lag": lag, "consumer_id": owner}
                for number, (lag, owner) in enumerate(zip(self.lags, found, strict=True))
            ]
            members: list[Any] = [
                {column.name: None for column in MEMBERS}
                | {"snapshot_ts": "2026-01-31T12:00:00Z", "group": name, "consumer_id": owner, "client_id": owner}
                | {"topics": ["orders"], "protocol": self.protocol, "group_state": self.state}
                | {"assignor": "evenlag-plan"}
                for owner in sorted({*found})
            ]
            for _, group in of_rows("broker:9092", offsets, members, "latest"):
                yield Seen(name, group, START)


@dataclass
class Trial:
    """A watcher with a loop, round by round, at times that the test sets."""

    cluster: Cluster
    folder: Path
    place: Callable[[str], Any] | None = None
    dry_run: bool = False
    writer: FileWriter | None = None
    max_moves: int | None = None
    now: float = START
    log: list[str] = field(default_factory=list)
    board: Board = field(default_factory=lambda: Board(9))

    def __post_init__(self) -> None:
        caution = Caution(LEAST, self.max_moves, self.dry_run)
        place = self.place or (lambda group: PlanFile(self.path(group), group))
        loop = Loop(
            caution, place, self.cluster, self.log.append, self.writer, self.board.tallies, now=lambda: self.now
        )
        moves = {} if self.max_moves is None else {"max_moves": self.max_moves}
        asked = Asked(only_if_better="10%", solving=moves)
        self._watcher = Watcher(self.cluster, self.board, asked, 60.0, 5.0, self.log.append, loop)

    def path(self, group: str = "g") -> Path:
        return self.folder / f"{group}.json"

    def round(self, seconds: float = 0.0) -> list[str]:
        """Run a round after some seconds; return the lines of the log."""
        self.now += seconds
        before = len(self.log)
        self._watcher.round()
        return self.log[before:]

    def waits(self, group: str = "g") -> dict[str, int]:
        return dict(self.board.tallies[group].waits)


def test_a_plan_is_published_once_and_again_only_after_the_interval(tmp_path: Path) -> None:
    trial = Trial(Cluster({"g": UNEVEN}), tmp_path)
    line, *others = trial.round()
    assert others == []
    document = json.loads(trial.path().read_text())
    assert line == f"group 'g': published plan {document['version']}: 2 moves, spread 100 → 0 messages"
    loads = {name: sum(LAGS[number] for _, number in keys) for name, keys in document["assignment"].items()}
    assert loads == {"a": 110, "b": 110}
    assert document["members"] == {name: {"client_id": name} for name in "ab"}
    assert document["lags"] == {"orders": list(LAGS)}
    assert "waits (not-in-force): " in trial.round(60)[0]
    in_force = "".join({n: name for name, keys in document["assignment"].items() for _, n in keys}[n] for n in range(4))
    trial.cluster.owners["g"] = in_force
    assert "waits (not-worth): no plan pays; the best one found: 0 moves" in trial.round(60)[0]
    trial.cluster.lags = tuple(lag if owner == "a" else 0 for lag, owner in zip(LAGS, in_force, strict=True))
    assert "waits (interval): " in trial.round(60)[0]
    assert "waits (interval): " in trial.round(START + LEAST - 1 - trial.now)[0]
    assert trial.round(1)[0].startswith("group 'g': published plan ")


def test_the_metrics_count_decisions(tmp_path: Path) -> None:
    trial = Trial(Cluster({"g": UNEVEN, "h": EVEN, "i": ValueError("no answer")}), tmp_path)
    trial.round()
    trial.round(60)
    found = {
        (each.name, *each.labels.values()): each.value
        for family in text_string_to_metric_families(text_of(trial.board, 60.0))
        for each in family.samples
        if "plan_waits" in each.name or "plans_published" in each.name or "last_plan" in each.name
    }
    assert found == {
        ("evenlag_plans_published_total", "g"): 1,
        ("evenlag_plans_published_total", "h"): 0,
        ("evenlag_plans_published_total", "i"): 0,
        ("evenlag_last_plan_timestamp_seconds", "g"): START,
        ("evenlag_plan_waits_total", "g", "not-in-force"): 1,
        ("evenlag_plan_waits_total", "h", "not-worth"): 2,
        ("evenlag_plan_waits_total", "i", "unseen"): 2,
    }
    assert sum(line == "group 'i': waits (unseen): no answer" for line in trial.log) == 2
    trial = Trial(Cluster({}), tmp_path)
    assert "plan_waits" not in text_of(trial.board, 60.0)


def test_followers_are_watched_anew_after_rounds_that_could_not_read_them(tmp_path: Path) -> None:
    trial = Trial(Cluster({"g": UNEVEN}, protocol="follow"), tmp_path, dry_run=True)
    assert "waits (watching)" in trial.round()[0]
    assert "waits (dry-run)" in trial.round(60)[0]
    for failed, word in ((1, "interval"), (2, "watching"), (0, "interval")):
        trial.cluster.owners["g"] = ValueError("no answer")
        for _ in range(failed):
            assert "waits (unseen)" in trial.round(60)[-1]
        trial.cluster.owners["g"] = UNEVEN
        assert f"waits ({word})" in trial.round(60)[0]


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    trial = Trial(Cluster({"g": UNEVEN}), tmp_path, dry_run=True)
    assert trial.round() == ["group 'g': waits (dry-run): would publish a plan: 2 moves, spread 100 → 0 messages"]
    assert "waits (interval)" in trial.round(60)[0]
    assert "waits (dry-run)" in trial.round(LEAST)[0]
    assert list(tmp_path.iterdir()) == []


def test_few_moves_at_a_time(tmp_path: Path) -> None:
    trial = Trial(Cluster({"g": UNEVEN}), tmp_path, max_moves=1)
    trial.round()
    assert not trial.path().exists()  # the counts allow only an exchange
    trial = Trial(Cluster({"g": UNEVEN}), tmp_path, max_moves=2)
    trial.round()
    assert trial.path().exists()
    trial = Trial(Cluster({"g": "aaab"}), tmp_path / "uneven", max_moves=0)
    said = trial.round()[-1]
    assert said.startswith("group 'g': waits (unseen): "), said
    assert "1 move" in said


def test_nothing_is_published_for_a_group_that_has_changed_meanwhile(tmp_path: Path) -> None:
    cluster = Cluster({"g": UNEVEN})
    trial = Trial(cluster, tmp_path)

    def second_time(change: Callable[[], None]) -> Callable[[], None]:
        return lambda: change() if cluster.reads % 2 else None

    for change, why in (
        (lambda: cluster.owners.update(g=EVEN), "its members, partitions or owners"),
        (lambda: cluster.owners.update(g="abcc"), "its members, partitions or owners"),
        (lambda: setattr(cluster, "state", "PreparingRebalance"), "the group was rebalancing"),
        (lambda: cluster.owners.update(g=ValueError("no answer")), "it cannot be read again: no answer"),
        (lambda: cluster.owners.clear(), "it is gone"),
    ):
        cluster.before_reading = second_time(change)
        assert trial.round(60)[-1].startswith(f"group 'g': waits (changed): {why}"), why
        cluster.owners, cluster.state = {"g": UNEVEN}, "Stable"
    assert trial.waits() == {Reason.CHANGED: 5}
    assert not trial.path().exists()


def test_a_plan_that_somebody_publishes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    cluster = Cluster({"g": UNEVEN})
    trial = Trial(cluster, tmp_path)
    by_hand = FollowedPlan("g", round(1000 * START), {"a": (("orders", 0), ("orders", 1)), "b": (("orders", 2),)})

    def publish_by_hand() -> None:
        if cluster.reads == 1:  # before the group is read for the second time
            PlanFile(trial.path(), "g").write(by_hand)

    cluster.before_reading = publish_by_hand
    assert trial.round()[-1].startswith(f"group 'g': waits (interval): plan {by_hand.version} was published")
    assert json.loads(trial.path().read_text()) == by_hand.to_dict()


@pytest.mark.parametrize(
    "content", [json.dumps({"group": "other", "version": 1, "assignment": {"a": [["orders", 0]]}}), '{"group": "g", ']
)
def test_the_plan_of_another_group_and_garbage_are_not_overwritten(tmp_path: Path, content: str) -> None:
    trial = Trial(Cluster({"g": UNEVEN}), tmp_path)
    trial.path().write_text(content)
    assert "waits (unread-place): " in trial.round()[0]
    assert trial.path().read_text() == content


class TwoPlans(PlanFile):
    """A place that ends with a plan of a lower version than the one before."""

    def news(self) -> list[FollowedPlan | EvenlagError]:
        held = {"a": (("orders", 0), ("orders", 1)), "b": (("orders", 2), ("orders", 3))}
        return [FollowedPlan("g", round(1000 * start), held) for start in (START, START - 2 * LEAST)]


def test_the_plan_of_the_highest_version_counts(tmp_path: Path) -> None:
    trial = Trial(Cluster({"g": UNEVEN}), tmp_path, lambda group: TwoPlans(tmp_path / "x", group))
    assert trial.round()[0].startswith(f"group 'g': waits (interval): plan {round(1000 * START)} was published")


class Refusing(PlanFile):
    """A place that nobody may write to, or that is broken."""

    error: Exception = SourceError("topic plans: the plan was not written (no answer in time)")

    def write(self, _plan: FollowedPlan) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [(Refusing.error, "topic plans: the plan was not written (no answer in time)"), (OSError("full"), "OSError: full")],
)
def test_a_place_that_cannot_be_written_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setattr(Refusing, "error", error)
    trial = Trial(Cluster({"g": UNEVEN, "h": EVEN}), tmp_path, lambda group: Refusing(tmp_path / "x", group))
    assert f"group 'g': waits (failed): {said}" in trial.round()
    assert trial.waits("h") == {Reason.NOT_WORTH: 1}
    assert trial.board.tallies["g"].published == 0


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


class Terminating(PlanFile):
    """A place that gets SIGTERM while it is written."""

    def write(self, plan: FollowedPlan) -> None:
        terminate()
        super().write(plan)


def test_a_plan_that_is_being_written_at_sigterm_is_written_and_counted(tmp_path: Path) -> None:
    trial = Trial(Cluster({"g": UNEVEN, "h": UNEVEN}), tmp_path, lambda group: Terminating(tmp_path / group, group))
    with pytest.raises(Terminated):
        trial.round()
    assert [path.name for path in tmp_path.iterdir()] == ["g"]
    assert json.loads((tmp_path / "g").read_text())["group"] == "g"
    assert [line.split(":")[1] for line in trial.log] == [
        f" published plan {json.loads((tmp_path / 'g').read_text())['version']}"
    ]
    assert {name: tally.published for name, tally in trial.board.tallies.items()} == {"g": 1}


def test_no_plan_is_begun_after_sigterm(tmp_path: Path) -> None:
    cluster = Cluster({"g": UNEVEN})
    cluster.before_reading = lambda: terminate() if cluster.reads == 1 else None
    trial = Trial(cluster, tmp_path)
    with pytest.raises(Terminated):
        trial.round()
    assert (cluster.reads, trial.log, list(tmp_path.iterdir())) == (2, [], [])


def test_a_plan_whose_search_sigterm_ended_is_not_considered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def terminated(*arguments: Any) -> Standing:
        terminate()
        return standing_of(*arguments)

    monkeypatch.setattr(rounds, "standing_of", terminated)
    trial = Trial(Cluster({"g": UNEVEN}), tmp_path)
    with pytest.raises(Terminated):
        trial.round()
    assert (trial.cluster.reads, trial.log) == (1, [])


def test_a_second_loop_waits_for_the_end_of_the_first(tmp_path: Path) -> None:
    cluster = Cluster({"g": UNEVEN})
    path = tmp_path / "g.json"
    first, second = (Trial(cluster, tmp_path, writer=FileWriter(path)) for _ in range(2))
    assert first.round()[0].startswith("group 'g': published plan ")
    cluster.owners["g"] = "bbaa"
    path.unlink()
    said = f"group 'g': waits (other-loop): another loop publishes to {path}: it holds {path}.lock"
    assert second.round() == [said]
    assert second.round(60) == [said]
    assert first.writer is not None
    first.writer.close()
    assert second.round(60)[0].startswith("group 'g': published plan ")
    assert second.writer is not None
    second.writer.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_one_loop_writes_after_the_lock_was_removed(tmp_path: Path, replaced: bool) -> None:
    path, lock = tmp_path / "g.json", tmp_path / "g.json.lock"
    first, second = FileWriter(path), FileWriter(path)
    assert (first.objection(), second.objection() is None) == (None, False)
    lock.unlink()
    if replaced:
        lock.touch()
    assert (second.objection(), first.objection() is None) == (None, False)
    assert second.objection() is None
    for each in (first, second):
        each.close()


def test_a_lock_that_cannot_be_made_is_a_reason(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path / "nowhere" / "g.json")
    assert writer.objection() == f"{tmp_path}/nowhere/g.json.lock: cannot be written (no such file or directory)"
    writer.close()


def test_an_error_of_the_source_decides_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        raise EvenlagError("no broker answers")

    cluster = Cluster({"g": UNEVEN}, before_reading=fail)
    trial = Trial(cluster, tmp_path)
    assert trial.round() == ["read failed: no broker answers"]
    assert trial.board.tallies == {}
