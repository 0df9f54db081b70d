"""Real exporters on a real broker report the lags and owners of a snapshot."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from evenlag.errors import SourceError
from evenlag.live import Snapshot, snapshot
from evenlag.model.lag import partition_lag
from evenlag.tables.formats import FORMATS, Reading
from tests.support.broker import Broker
from tests.support.exporters import EXPORTERS, answer_of, program_of, running_exporter
from tests.support.traffic import SETTLE_LIMIT, Member, commit, create_topics, produce, running_group

GROUP, IDLE = "exported-billing", 'exported "night" \\ly'


def reading_of(text: str) -> Reading:
    (form,) = [form for form in FORMATS.values() if form.recognises(text)]
    return form.read(text, "answer")


def lags_of(rows: list[dict[str, Any]], group: str) -> dict[tuple[str, int], int]:
    """The lag of each partition of a group by the lag rule."""
    offsets = ("log_start_offset", "log_end_offset", "current_offset", "lag")
    return {
        (row["topic"], row["partition"]): partition_lag(*(row.get(name) for name in offsets)).messages
        for row in rows
        if row["group"] == group
    }


def exported_lags(text: str, group: str) -> dict[tuple[str, int], int]:
    return lags_of([dict(row) for _, row in reading_of(text).offsets], group)


def has_lags_of(text: str, taken: Snapshot, group: str) -> bool:
    """Return whether an exporter's text has the lags of a group in a snapshot; False until it knows the group."""
    try:
        return exported_lags(text, group) == lags_of(taken.offsets, group)
    except SourceError:
        return False


def commit_all_but(members: dict[str, Member], bootstrap: str, group: str, without: set[tuple[str, int]]) -> None:
    """Let each member commit offset 5 for its partitions, except for some."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    described = admin.describe_consumer_groups([group])[group].result(SETTLE_LIMIT)
    for member in described.members:
        owned = {(each.topic, each.partition) for each in member.assignment.topic_partitions}
        members[member.client_id].commit(dict.fromkeys(owned - without, 5))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPORTERS)
def test_a_real_exporter_reports_the_lags_and_owners_of_a_snapshot(name: str, broker: Broker, tmp_path: Path) -> None:
    program = program_of(name)
    if program is None:
        pytest.skip(f"{name} is not on this machine: put its release into .cache/exporters (tests/metrics/README.md)")
    topics = {f"{name}-orders": 4, f"{name}-refunds": 3}
    group, idle = f"{GROUP}-{name}", f"{IDLE}-{name}"
    create_topics(broker.bootstrap, topics)
    produce(broker.bootstrap, f"{name}-orders", [1000, 600, 500, 40])
    produce(broker.bootstrap, f"{name}-refunds", [10, 0, 7])
    commit(broker.bootstrap, idle, {(f"{name}-orders", 0): 990, (f"{name}-orders", 1): 600})
    with running_group(broker.bootstrap, group, {"app-1": list(topics), "app-2": list(topics)}) as members:
        commit_all_but(members, broker.bootstrap, group, {(f"{name}-refunds", 1), (f"{name}-refunds", 2)})
        taken = snapshot(broker.bootstrap, [group, idle])
        with running_exporter(name, program, broker.bootstrap, tmp_path) as ask:
            answer = answer_of(ask, group, lambda text: has_lags_of(text, taken, group))
            assert exported_lags(answer, group) == lags_of(taken.offsets, group)
            check_members(reading_of(answer), taken, group, owners=EXPORTERS[name].owners)
            check_idle(answer_of(ask, idle, lambda text: reports_idle(text, idle)), taken, idle)


def check_members(reading: Reading, taken: Snapshot, group: str, *, owners: bool) -> None:
    """Compare owners with the snapshot if the exporter names them, and the number of members if not."""
    mine = [row for _, row in reading.members if row["group"] == group]
    assert len(mine) == 2
    clients = {row["consumer_id"]: row["client_id"] for row in taken.members}
    owners_read = {
        (row["topic"], row["partition"]): row["client_id"] for _, row in reading.offsets if row["group"] == group
    }
    held = {
        (row["topic"], row["partition"]): clients[row["consumer_id"]] for row in taken.offsets if row["group"] == group
    }
    # Some exporters leave out what is not committed, with its owner.
    left_out = {key for key in uncommitted(taken, group) if owners_read[key] is None}
    assert owners_read == (held | dict.fromkeys(left_out) if owners else dict.fromkeys(held))


def uncommitted(taken: Snapshot, group: str) -> set[tuple[Any, Any]]:
    rows = [row for row in taken.offsets if row["group"] == group]
    return {(row["topic"], row["partition"]) for row in rows if row["current_offset"] is None}


def reports_idle(text: str, idle: str) -> bool:
    try:
        return len(exported_lags(text, idle)) >= 2
    except SourceError:
        return False


def check_idle(text: str, taken: Snapshot, idle: str) -> None:
    """Check the commits of a group without members, whose name has quotes and a backslash."""
    exported, real = exported_lags(text, idle), lags_of(taken.offsets, idle)
    assert {key: exported[key] for key in real} == real
    assert not [row for _, row in reading_of(text).members if row["group"] == idle]
