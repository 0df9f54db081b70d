package io.evenlag;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;

/** A fallback that gives the same partitions to all members and to one that there is not. */
public class WrongAssignor extends RoundRobinAssignor {
    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription groupSubscription) {
        Map<String, Assignment> answer = new HashMap<>();
        List<TopicPartition> same = List.of(new TopicPartition("t0", 0), new TopicPartition("t1", 99));
        groupSubscription.groupSubscription().keySet().forEach(member -> answer.put(member, new Assignment(same)));
        answer.put("nobody", new Assignment(same));
        return new GroupAssignment(answer);
    }
}
