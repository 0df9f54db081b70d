package io.evenlag;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Plans in a compacted topic, with the group as the key of each record; read by a consumer without a group. */
final class PlanTopic implements Plans {
    /** Settings of the group's consumer that its reader must not have. */
    private static final List<String> LEFT_OUT = List.of(
        "group.id", "group.instance.id", "group.protocol", "group.remote.assignor", "partition.assignment.strategy",
        "interceptor.classes", "isolation.level", "fetch.min.bytes", "max.poll.records", "client.id",
        "auto.commit.interval.ms", "session.timeout.ms", "heartbeat.interval.ms");
    private static final Duration STEP = Duration.ofMillis(100);

    private final String topic;
    private final byte[] key;
    private final Map<String, Object> config = new HashMap<>();
    private KafkaConsumer<byte[], byte[]> reader;
    private List<News> found = new ArrayList<>();

    /**
     * @param group the group whose plans are read; null for all groups
     * @param consumer the settings of the group's consumer, whose brokers and login the reader uses
     */
    PlanTopic(String topic, String group, Map<String, ?> consumer) {
        this.topic = topic;
        this.key = group == null ? null : group.getBytes(StandardCharsets.UTF_8);
        consumer.forEach((name, value) -> {
            if (!LEFT_OUT.contains(name) && !name.startsWith(Settings.PREFIX)) {
                config.put(name, value);
            }
        });
        config.put(ConsumerConfig.CLIENT_ID_CONFIG, consumer.get(ConsumerConfig.CLIENT_ID_CONFIG) + "-plans");
        config.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        config.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        config.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        config.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        config.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
    }

    @Override
    public List<News> news(Duration limit) throws UnreadException {
        long end = System.nanoTime() + limit.toNanos();
        try {
            read(end);
        } catch (TimeoutException exception) {  // the next call goes on from here
            throw new UnreadException(this + ": was not read to the end in time");
        } catch (KafkaException | UnreadException exception) {
            close();
            String why = exception instanceof UnreadException ? exception.getMessage() : exception.toString();
            throw new UnreadException(this + ": " + why);
        }
        List<News> news = found;
        found = new ArrayList<>();
        return news;
    }

    private void read(long end) throws UnreadException {
        Set<TopicPartition> partitions = new HashSet<>();
        if (reader == null) {
            reader = new KafkaConsumer<>(config);
        }
        List<PartitionInfo> infos = reader.partitionsFor(topic, left(end));
        if (infos == null || infos.isEmpty()) {
            throw new UnreadException("does not exist; create it with cleanup.policy=compact");
        }
        infos.forEach(info -> partitions.add(new TopicPartition(topic, info.partition())));
        if (!reader.assignment().equals(partitions)) {
            found.clear();
            reader.assign(partitions);
            reader.seekToBeginning(partitions);
        }
        Map<TopicPartition, Long> ends = reader.endOffsets(partitions, left(end));
        for (Map.Entry<TopicPartition, Long> each : ends.entrySet()) {
            if (reader.position(each.getKey(), left(end)) > each.getValue()) {
                throw new UnreadException("has lost records; it is read again from the beginning");
            }
        }
        while (!isRead(ends, end)) {
            for (ConsumerRecord<byte[], byte[]> record : reader.poll(left(end).compareTo(STEP) < 0 ? left(end) : STEP)) {
                if (record.key() != null && (key == null || Arrays.equals(record.key(), key))) {
                    String place = this + ", partition " + record.partition() + ", offset " + record.offset();
                    found.add(News.of(place, record.value(), new String(record.key(), StandardCharsets.UTF_8)));
                }
            }
        }
    }

    private boolean isRead(Map<TopicPartition, Long> ends, long end) {
        for (Map.Entry<TopicPartition, Long> each : ends.entrySet()) {
            if (reader.position(each.getKey(), left(end)) < each.getValue()) {
                return false;
            }
        }
        return true;
    }

    private static Duration left(long end) {
        long left = end - System.nanoTime();
        if (left <= 0) {
            throw new TimeoutException();
        }
        return Duration.ofNanos(left);
    }

    @Override
    public boolean isQuick() {
        return false;
    }

    @Override
    @SuppressWarnings("deprecation") // what replaces close(Duration) is missing before Kafka 4.1
    public void close() {
        KafkaConsumer<byte[], byte[]> closing = reader;
        reader = null;
        found.clear();
        if (closing != null) {
            try {
                closing.close(Duration.ZERO);
            } catch (KafkaException exception) {
                // its connections end all the same
            }
        }
    }

    @Override
    public String toString() {
        return "topic " + topic;
    }
}
