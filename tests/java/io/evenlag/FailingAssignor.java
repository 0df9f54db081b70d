package io.evenlag;

import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.common.Cluster;

/** A fallback that throws. */
public class FailingAssignor extends RoundRobinAssignor {
    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription groupSubscription) {
        throw new IllegalStateException("fails on purpose");
    }
}
