"""Groups from their records, whatever the clocks of brokers say."""

import pytest

from evenlag.protocol.coordinator_records import CURRENT, GROUP_EPOCH, MEMBER, TARGET, TARGET_EPOCH
from evenlag.protocol.membership import GroupRecords
from tests.support import coordinator_bytes as encode

TOPIC = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(("at", "seconds"), [(1_500, 0.5), (1_000, 0.0), (400, 0.0)])
def test_no_rebalance_settles_before_it_begins(at: int, seconds: float) -> None:
    """The clock of another leader may be behind."""
    group = GroupRecords({TOPIC: "t"})
    held = [(TOPIC, [0])]
    for millis, key, value in (
        (900, encode.consumer_key(MEMBER, "g", "m"), encode.member_value(["t"])),
        (900, encode.consumer_key(GROUP_EPOCH, "g"), encode.epoch_value(1)),
        (1_000, encode.consumer_key(TARGET, "g", "m"), encode.target_value(held)),
        (1_000, encode.consumer_key(TARGET_EPOCH, "g"), encode.epoch_value(1)),
        (at, encode.consumer_key(CURRENT, "g", "m"), encode.current_value(1, held)),
    ):
        assert group.add(millis, key, value) is None
    assert [each.settled_seconds for each in group.rebalances] == [seconds]
