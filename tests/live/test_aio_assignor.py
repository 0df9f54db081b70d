"""aiokafka's consumers, on a real broker, follow the same plan."""

import asyncio
import time
from collections.abc import Callable

import pytest

import evenlag
from evenlag.live.assignor import AioEvenlagAssignor, Decision
from tests.support.broker import Broker
from tests.support.traffic import create_topics, produce

BACKLOG = [9000, 10, 4000, 30, 2500, 20, 700, 1200, 5, 60, 3300, 90]


def test_aiokafka_has_no_cooperative_protocol() -> None:
    with pytest.raises(TypeError, match="cooperative"):
        AioEvenlagAssignor("localhost:9", "g", cooperative=True)


@pytest.mark.broker
@pytest.mark.slow
def test_consumers_of_aiokafka_follow_the_solver_and_rebalance_by_themselves(broker: Broker) -> None:
    topic = group = "aio"
    create_topics(broker.bootstrap, {topic: len(BACKLOG)})
    produce(broker.bootstrap, topic, BACKLOG)
    asyncio.run(follow(broker.bootstrap, topic, group))


async def follow(bootstrap: str, topic: str, group: str) -> None:
    from aiokafka import AIOKafkaConsumer

    decisions: list[Decision] = []
    assignors = [
        AioEvenlagAssignor(
            bootstrap, group, weight=weight, limit=20, auto_offset_reset="earliest", horizon=0,
            on_decision=decisions.append, rejoin_if_better="20%", rejoin_interval=3, read_every=0.5,
        )
        for weight in (1, 1, 2)
    ]  # fmt: skip
    consumers = [
        AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False,
            session_timeout_ms=30000, heartbeat_interval_ms=300, partition_assignment_strategy=[assignor],
        )
        for assignor in assignors
    ]  # fmt: skip
    lags = list(BACKLOG)
    running: list[AIOKafkaConsumer] = []

    def held() -> list[list[int]]:
        return sorted(sorted(each.partition for each in consumer.assignment()) for consumer in running)

    async def settled(members: int, more: Callable[[Decision], object] = bool) -> Decision:
        """Wait until the last decision names this many members and each holds the partitions that it assigns."""

        def there() -> bool:
            if not decisions or len(decisions[-1].assignment) != members or not more(decisions[-1]):
                return False
            planned = [sorted(p for _, p in mine) for mine in decisions[-1].assignment.values()]
            return held() == sorted(planned)

        end = time.monotonic() + 60
        while not there():
            assert time.monotonic() < end, (held(), [str(each) for each in decisions])
            await asyncio.sleep(0.1)
        return decisions[-1]

    def checked(decision: Decision) -> None:
        assert decision.solved, str(decision)
        assert decision.result is not None
        problem = decision.result.plan.problem
        assert problem.lags.tolist() == lags
        assert decision.result.spread == evenlag.solve(problem).spread

    try:
        await consumers[0].start()
        running.append(consumers[0])
        await settled(1)
        await asyncio.gather(*(consumer.start() for consumer in consumers[1:]))
        running += consumers[1:]
        checked(await settled(3))

        await running.pop(1).stop()
        decision = await settled(2)
        checked(decision)
        assert decision.result is not None
        problem = decision.result.plan.problem
        assert sorted(map(int, problem.weights)) == [1, 2]

        last = len(decisions)
        behind = {p for _, p in next(iter(decision.assignment.values()))}
        more = [20_000 * (p in behind) for p in range(12)]
        lags[:] = [lag + each for lag, each in zip(lags, more, strict=True)]
        await asyncio.get_running_loop().run_in_executor(None, produce, bootstrap, topic, more)
        decision = await settled(2, lambda _: len(decisions) > last)
        assert any("requested: the plan saves " in each for each in decision.why)
        checked(decision)
    finally:
        for consumer in running:
            await consumer.stop()
        for assignor in assignors:
            assignor.close()
