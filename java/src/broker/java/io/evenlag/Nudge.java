package io.evenlag;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes the coordinator of a KIP-848 group assign anew: a member joins that reads no topic, and leaves.
 *
 * <p>Its leaving raises the group's epoch, whatever it read. It gets no partition, so that no other member notices it.
 */
final class Nudge {
    private static final Logger LOG = LoggerFactory.getLogger(BrokerPlanAssignor.class);
    private static final SubscriptionPattern NOTHING = new SubscriptionPattern("^$");

    private Nudge() {
    }

    /** Returns whether the member joined; that it could not is logged. */
    static boolean group(String group, BrokerSettings settings) {
        Map<String, Object> config = new HashMap<>(settings.client());
        config.put("client.id", config.get("client.id") + "-nudge");
        config.put("group.id", group);
        config.put("group.protocol", "consumer");
        config.put("enable.auto.commit", false);
        long end = System.nanoTime() + settings.limit().toNanos();
        boolean joined = false;
        try (KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(NOTHING);
            while (!joined && System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(50));
                joined = consumer.groupMetadata().generationId() > 0;
            }
        } catch (KafkaException exception) {
            LOG.warn("group {}: a member that makes its coordinator assign anew cannot join it", group, exception);
            return false;
        }
        return joined;
    }
}
