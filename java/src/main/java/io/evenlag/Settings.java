package io.evenlag;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigDef.ValidString;
import org.apache.kafka.common.config.ConfigException;

/** The settings of {@link PlanAssignor} among those of its consumer. */
final class Settings {
    static final String PREFIX = "evenlag.plan.";
    static final String FILE = PREFIX + "file";
    static final String TOPIC = PREFIX + "topic";
    static final String FALLBACK = PREFIX + "fallback";
    static final String PROTOCOL = PREFIX + "protocol";
    static final String WEIGHT = PREFIX + "weight";
    static final String READ_TIMEOUT = PREFIX + "read.timeout.ms";
    static final String CHECK_INTERVAL = PREFIX + "check.interval.ms";
    static final String REBALANCE_INTERVAL = PREFIX + "rebalance.interval.ms";

    private static final ConfigDef DEFINITION = new ConfigDef()
        .define(FILE, Type.STRING, null, Importance.HIGH, "The file in which plans are published.")
        .define(TOPIC, Type.STRING, null, Importance.HIGH, "The compacted topic to which plans are published.")
        .define(FALLBACK, Type.CLASS, CooperativeStickyAssignor.class, Importance.MEDIUM,
            "The assignor of a group without a plan for its members.")
        .define(PROTOCOL, Type.STRING, "cooperative", ValidString.in("cooperative", "eager"), Importance.MEDIUM,
            "The rebalance protocol.")
        .define(WEIGHT, Type.INT, 1, Range.atLeast(1), Importance.LOW,
            "The capacity of this member relative to the others, for `evenlag snapshot`.")
        .define(READ_TIMEOUT, Type.INT, 3000, Range.atLeast(1), Importance.LOW,
            "How long the leader of a rebalance waits for the topic of plans.")
        .define(CHECK_INTERVAL, Type.INT, 1000, Range.atLeast(1), Importance.LOW,
            "How often a watched consumer looks for a new plan.")
        .define(REBALANCE_INTERVAL, Type.INT, 10_000, Range.atLeast(0), Importance.LOW,
            "The shortest time between a rebalance and one that a new plan causes.");

    final String group;
    final String clientId;
    final String instanceId;
    final Plans plans;
    final ConsumerPartitionAssignor fallback;
    final boolean eager;
    final int weight;
    final Duration readTimeout;
    final Duration checkInterval;
    final Duration rebalanceInterval;

    /** @throws ConfigException a setting is wrong; the message names it */
    Settings(Map<String, ?> configs) {
        Map<String, Object> ours = new HashMap<>();
        configs.forEach((name, value) -> {
            if (name.startsWith(PREFIX)) {
                if (!DEFINITION.names().contains(name)) {
                    throw new ConfigException(name + " is not a setting of PlanAssignor; it has " + DEFINITION.names());
                }
                ours.put(name, value);
            }
        });
        AbstractConfig config = new AbstractConfig(DEFINITION, ours, false);
        group = text(configs, ConsumerConfig.GROUP_ID_CONFIG);
        clientId = text(configs, ConsumerConfig.CLIENT_ID_CONFIG);
        instanceId = text(configs, ConsumerConfig.GROUP_INSTANCE_ID_CONFIG);
        if (group == null) {
            throw new ConfigException("PlanAssignor needs group.id");
        }
        String file = config.getString(FILE);
        String topic = config.getString(TOPIC);
        if ((file == null) == (topic == null)) {
            throw new ConfigException("PlanAssignor needs either " + FILE + " or " + TOPIC);
        }
        plans = file != null ? new PlanFile(Path.of(file), group) : new PlanTopic(topic, group, configs);
        if (config.getClass(FALLBACK) == null || PlanAssignor.class.isAssignableFrom(config.getClass(FALLBACK))) {
            throw new ConfigException(FALLBACK + " must name another assignor than PlanAssignor");
        }
        try {
            fallback = config.getConfiguredInstance(FALLBACK, ConsumerPartitionAssignor.class, new HashMap<>(configs));
        } catch (RuntimeException exception) {
            throw new ConfigException(FALLBACK + ": " + exception.getMessage());
        }
        eager = config.getString(PROTOCOL).equals("eager");
        weight = config.getInt(WEIGHT);
        readTimeout = Duration.ofMillis(config.getInt(READ_TIMEOUT));
        checkInterval = Duration.ofMillis(config.getInt(CHECK_INTERVAL));
        rebalanceInterval = Duration.ofMillis(config.getInt(REBALANCE_INTERVAL));
    }

    private static String text(Map<String, ?> configs, String name) {
        Object value = configs.get(name);
        return value == null || value.toString().isEmpty() ? null : value.toString();
    }
}
