"""Records that consumers of every kind leave on a real broker, decoded as Kafka's own tools print them."""

import pytest

from evenlag.protocol.record_decoding import CoordinatorRecord, decode_record
from tests.support.broker import Broker
from tests.support.golden_records import golden_records
from tests.support.group_records import check_as_kafka_prints, leave_records, read_records

pytestmark = pytest.mark.broker


def test_the_recorded_records_are_decoded_as_kafkas_formatters_print_them() -> None:
    """Those in tests/records, without a broker."""
    assert check_as_kafka_prints([raw for raw, _ in golden_records()]) == {1, 2, 3, 5, 6, 7, 8, 16}


def test_every_record_of_a_running_broker_is_decoded_as_kafkas_formatters_print_it(broker: Broker) -> None:
    leave_records(broker.bootstrap, "formatted")
    records = read_records(broker.bootstrap)
    assert {1, 2, 3, 5, 6, 7, 8, 16} <= check_as_kafka_prints(records)
    decoded = [decode_record(each.key, each.value) for each in records]
    committed = {each.key["group"] for each in decoded if isinstance(each, CoordinatorRecord) and each.kind == 1}
    assert {"formatted-python", "formatted-java-classic", "formatted-java-consumer", "formatted-commit"} <= committed
    assert "formatted-abort" not in committed
