"""Owners of partitions as the metadata of their commits names them."""

import json
from dataclasses import replace

import pytest

from evenlag.errors import UserDataError
from evenlag.live.ownership import Ownership
from tests.support.plain_kafka import Group, committed_owner, plan


@pytest.mark.parametrize("metadata", [None, "", "offset 7", "[1]", "7", '{"plan": 1}', "[" * 100_000])
def test_metadata_of_other_programs_name_no_owner(metadata: str | None) -> None:
    assert Ownership.decode(metadata) is None


def test_an_owner_with_a_rack_has_metadata_of_version_2() -> None:
    ownership = Ownership(1, "c1", "a", 2, "zone-a")
    assert Ownership.decode(ownership.encode()) == ownership
    assert json.loads(ownership.encode())["evenlag"] == 2
    assert json.loads(replace(ownership, rack=None).encode()) == {
        "evenlag": 1, "plan": 1, "owner": "c1", "instance": "a", "beat": 2
    }  # fmt: skip
    for wrong in ({"rack": 5}, {"rack": None}, {"evenlag": 1}):
        with pytest.raises(UserDataError, match="metadata of version"):
            Ownership.decode(json.dumps(json.loads(ownership.encode()) | wrong))


def test_members_with_and_without_racks_hand_partitions_to_each_other(group: Group) -> None:
    group.start("c1", rack="zone-a")
    group.start("c2")
    for version, (mine, yours) in enumerate([("01", "23"), ("13", "02"), ("2", "013")], 1):
        group.deliver(plan(version, c1=mine, c2=yours))
        group.run_for(10)
        assert group.holds() == {"c1": mine, "c2": yours}
        owners = [committed_owner(group.kafka, number) for number in range(4)]
        assert [None if each is None else each.rack for each in owners] == [
            "zone-a" if str(number) in mine else None for number in range(4)
        ]


@pytest.mark.parametrize("field", ["plan", "owner", "instance", "beat"])
def test_invalid_metadata_are_an_error(field: str) -> None:
    document = json.loads(Ownership(1, "c1", "a", 2).encode())
    with pytest.raises(UserDataError, match="metadata of version 1 with a value of the wrong type"):
        Ownership.decode(json.dumps(document | {field: 1.5}))
    del document[field]
    with pytest.raises(UserDataError, match="metadata of version 1"):
        Ownership.decode(json.dumps(document))
