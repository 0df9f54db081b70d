package io.evenlag;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;

/**
 * A trial: tasks of Kafka Streams (KIP-924) go to the process whose consumer the plan gives all their source partitions.
 *
 * <p>A task that the plan splits or leaves out stays where it was, or goes to the process with the fewest tasks a thread.
 * There are no standby tasks. As tasks move only in a rebalance, one follows after each interval.
 */
public final class PlanTaskAssignor implements TaskAssignor {
    private PlanReader reader;
    private Duration interval;

    @Override
    public void configure(Map<String, ?> configs) {
        String group = configs.get("application.id").toString();
        reader = new PlanReader(new PlanFile(Path.of(configs.get(Settings.FILE).toString()), group), group, new PlanStatus());
        interval = Duration.ofMillis(Long.parseLong(configs.get(Settings.REBALANCE_INTERVAL).toString()));
    }

    @Override
    public TaskAssignment assign(ApplicationState application) {
        reader.read(Duration.ofSeconds(3));
        Map<ProcessId, KafkaStreamsState> states = application.kafkaStreamsStates(false);
        Map<String, ProcessId> processOf = processOf(states.values());
        Map<ProcessId, Set<AssignedTask>> tasks = new TreeMap<>();
        states.keySet().forEach(process -> tasks.put(process, new HashSet<>()));
        List<TaskId> left = new ArrayList<>();
        new TreeMap<>(application.allTasks()).forEach((id, task) -> {
            Set<String> owners = sources(task).map(this::owner).collect(Collectors.toSet());
            ProcessId process = owners.size() == 1 ? processOf.get(owners.iterator().next()) : null;
            if (process == null) {
                left.add(id);
            } else {
                tasks.get(process).add(new AssignedTask(id, AssignedTask.Type.ACTIVE));
            }
        });
        for (TaskId id : left) {
            Comparator<KafkaStreamsState> fewest = Comparator.comparingDouble(
                state -> (double) tasks.get(state.processId()).size() / state.numProcessingThreads());
            KafkaStreamsState taker = states.values().stream()
                .filter(state -> state.previousActiveTasks().contains(id)).findFirst()
                .orElseGet(() -> states.values().stream().min(fewest).orElseThrow());
            tasks.get(taker.processId()).add(new AssignedTask(id, AssignedTask.Type.ACTIVE));
        }
        Instant next = Instant.now().plus(interval);
        List<KafkaStreamsAssignment> answer = new ArrayList<>();
        tasks.forEach((process, given) -> answer.add(KafkaStreamsAssignment.of(process, given).withFollowupRebalance(next)));
        return new TaskAssignment(answer);
    }

    private static Stream<TopicPartition> sources(TaskInfo task) {
        return task.topicPartitions().stream().filter(TaskTopicPartition::isSource).map(TaskTopicPartition::topicPartition);
    }

    private String owner(TopicPartition partition) {
        Plan plan = reader.newest();
        return plan == null ? "" : plan.owners.getOrDefault(partition, "");
    }

    /** Returns the process of each name in the plan. */
    private Map<String, ProcessId> processOf(Iterable<KafkaStreamsState> states) {
        Map<String, Identity> consumers = new HashMap<>();
        Map<String, List<TopicPartition>> held = new HashMap<>();
        Map<String, ProcessId> processes = new HashMap<>();
        states.forEach(state -> state.consumerClientIds().forEach(consumer -> {
            consumers.put(consumer, new Identity(null, MemberNames.withoutTail(consumer), null, null));
            held.put(consumer, List.of());
            processes.put(consumer, state.processId());
        }));
        Map<String, ProcessId> named = new HashMap<>();
        if (reader.newest() != null) {
            new MemberNames(reader.newest(), consumers, held).nameOf
                .forEach((consumer, name) -> named.put(name, processes.get(consumer)));
        }
        return named;
    }
}
