package io.evenlag;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;

/**
 * What a member tells the leader when it joins: its weight, the version of the plan that it has read, and under the
 * eager protocol the partitions that it had.
 *
 * <p>Layout, big-endian: int16 version of the layout (1), int32 weight, int64 version of the plan (0: none), then to
 * the end for each topic int32 length and name, int32 number of partitions, int32 each. `evenlag snapshot` reads it.
 */
final class UserData {
    private static final short VERSION = 1;
    private static final int HEAD = Short.BYTES + Integer.BYTES + Long.BYTES;

    final int weight;
    final long plan;
    final List<TopicPartition> owned;

    UserData(int weight, long plan, Collection<TopicPartition> owned) {
        this.weight = weight;
        this.plan = plan;
        this.owned = List.copyOf(owned);
    }

    ByteBuffer encode() {
        Map<String, List<Integer>> byTopic = byTopic(owned);
        int size = HEAD;
        for (Map.Entry<String, List<Integer>> topic : byTopic.entrySet()) {
            size += (2 + topic.getValue().size()) * Integer.BYTES + utf8(topic.getKey()).length;
        }
        ByteBuffer buffer = ByteBuffer.allocate(size).putShort(VERSION).putInt(weight).putLong(plan);
        byTopic.forEach((topic, partitions) -> {
            byte[] name = utf8(topic);
            buffer.putInt(name.length).put(name).putInt(partitions.size());
            partitions.forEach(buffer::putInt);
        });
        buffer.flip();
        return buffer;
    }

    /** Reads what a member sent. Bytes that are not in this layout count as those of a new member. */
    static UserData decode(ByteBuffer sent) {
        UserData nothing = new UserData(1, 0, List.of());
        if (sent == null || sent.remaining() < HEAD) {
            return nothing;
        }
        ByteBuffer buffer = sent.duplicate();
        if (buffer.getShort() != VERSION) {
            return nothing;
        }
        int weight = buffer.getInt();
        long plan = buffer.getLong();
        List<TopicPartition> owned = new ArrayList<>();
        while (buffer.hasRemaining()) {
            int length = count(buffer, 1);
            if (length < 0) {
                return nothing;
            }
            byte[] name = new byte[length];
            buffer.get(name);
            String topic = new String(name, StandardCharsets.UTF_8);
            int partitions = count(buffer, Integer.BYTES);
            if (partitions < 0) {
                return nothing;
            }
            for (int i = 0; i < partitions; i++) {
                owned.add(new TopicPartition(topic, buffer.getInt()));
            }
        }
        return new UserData(Math.max(weight, 1), Math.max(plan, 0), owned);
    }

    /** Reads a number of entries of this size; returns -1 where they cannot follow. */
    private static int count(ByteBuffer buffer, int size) {
        int count = buffer.remaining() < Integer.BYTES ? -1 : buffer.getInt();
        return count >= 0 && (long) count * size <= buffer.remaining() ? count : -1;
    }

    /** Encodes owned partitions as Kafka's StickyAssignor does (KIP-54, KIP-341). */
    static ByteBuffer sticky(Collection<TopicPartition> owned, int generation) {
        Map<String, List<Integer>> byTopic = byTopic(owned);
        int size = 2 * Integer.BYTES;
        for (Map.Entry<String, List<Integer>> topic : byTopic.entrySet()) {
            size += Short.BYTES + utf8(topic.getKey()).length + (1 + topic.getValue().size()) * Integer.BYTES;
        }
        ByteBuffer buffer = ByteBuffer.allocate(size).putInt(byTopic.size());
        byTopic.forEach((topic, partitions) -> {
            byte[] name = utf8(topic);
            buffer.putShort((short) name.length).put(name).putInt(partitions.size());
            partitions.forEach(buffer::putInt);
        });
        buffer.putInt(generation);
        buffer.flip();
        return buffer;
    }

    private static Map<String, List<Integer>> byTopic(Collection<TopicPartition> partitions) {
        Map<String, List<Integer>> byTopic = new TreeMap<>();
        for (TopicPartition partition : partitions) {
            byTopic.computeIfAbsent(partition.topic(), topic -> new ArrayList<>()).add(partition.partition());
        }
        return byTopic;
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
