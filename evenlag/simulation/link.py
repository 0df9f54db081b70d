"""The network between a client and the brokers: requests take time, and some answers are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from evenlag.simulation.world import World

if TYPE_CHECKING:
    from evenlag.simulation.cluster import Cluster

LATENCY = 0.004  # mean seconds of a request's way, one of two
SLOW = 0.01, 2.0  # share of ways that take longer, and up to how many seconds
LOST = 0.003  # share of answers that do not arrive
LATE = 1.6, 1.9  # seconds that a late commit takes: less than a claim must stand
AGAIN = 0.25  # seconds between attempts to reach a broker


class Link:
    """The connections of one client.

    Attributes
    ----------
    cut_off_until : float
        Time until which no request of this client arrives.
    late_until : float
        Time until which its commits take long and it reads no new plan; all other requests are quick.
    """

    def __init__(self, world: World, cluster: Cluster) -> None:
        self._world, self._cluster = world, cluster
        self.cut_off_until = self.late_until = 0.0

    def unreachable(self) -> bool:
        """Return whether no request arrives now."""
        return self._world.now < max(self._cluster.down_until, self.cut_off_until)

    def lost(self) -> bool:
        """Return whether an answer that is on its way now does not arrive."""
        return self.unreachable() or self._world.random.random() < LOST

    @property
    def late(self) -> bool:
        """True while commits take long."""
        return self._world.now < self.late_until

    def ask(self, patience: float, *, coordinator: bool) -> None:
        """Let a request arrive.

        Raises
        ------
        KafkaException
            It has not arrived after the seconds of `patience`: the error is that of confluent-kafka.
        """
        began = self._world.now
        self.way()
        while self.unreachable() or (coordinator and self._world.now < self._cluster.moving_until):
            if self._world.now - began >= patience:
                away = coordinator and not self.unreachable()
                raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR if away else KafkaError._TIMED_OUT))
            self._world.sleep(AGAIN)

    def dawdle(self) -> None:
        """Wait as long as a late commit takes to arrive."""
        if self.late:
            self._world.sleep(self._world.random.uniform(*LATE))

    def answer(self, patience: float, *, lost: bool = False) -> None:
        """Let an answer arrive, unless it is `lost`.

        Raises
        ------
        KafkaException
            It is lost, as the client notices after the seconds of `patience`.
        """
        if lost or self.lost():
            self._world.sleep(patience)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        self.way()

    def way(self) -> None:
        """Let the time of one way pass."""
        random = self._world.random
        share, longest = SLOW
        slow = random.uniform(0, longest) if random.random() < share and not self.late else 0.0
        self._world.sleep(random.expovariate(1 / LATENCY) + slow)
