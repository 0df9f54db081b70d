package io.evenlag;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;

/** The settings of {@link BrokerPlanAssignor} among those of its broker. */
record BrokerSettings(String topic, int node, Duration checkInterval, Duration limit, Map<String, Object> client) {
    static final String TOPIC = "evenlag.plan.topic";
    static final String CHECK_INTERVAL = "evenlag.plan.check.interval.ms";
    static final String READ_TIMEOUT = "evenlag.plan.read.timeout.ms";
    static final String CLIENT = "evenlag.plan.client.";
    static final String SERVERS = CLIENT + "bootstrap.servers";

    private static final ConfigDef DEFINITION = new ConfigDef()
        .define(TOPIC, Type.STRING, Importance.HIGH, "The compacted topic to which plans are published.")
        .define(SERVERS, Type.STRING, Importance.HIGH, "The brokers' addresses for clients.")
        .define("node.id", Type.INT, Importance.HIGH, "The number of this broker.")
        .define(CHECK_INTERVAL, Type.INT, 1000, Range.atLeast(1), Importance.LOW,
            "How often the broker looks for new plans and members.")
        .define(READ_TIMEOUT, Type.INT, 5000, Range.atLeast(1), Importance.LOW, "How long it waits for answers.");

    /** @throws ConfigException a setting is missing or wrong; the message names it */
    BrokerSettings(Map<String, ?> configs) {
        this(new AbstractConfig(DEFINITION, configs, false), new HashMap<>());
        configs.forEach((name, value) -> {
            if (name.startsWith(CLIENT)) {
                client.put(name.substring(CLIENT.length()), value);
            } else if (name.startsWith("evenlag.plan.") && !DEFINITION.names().contains(name)) {
                throw new ConfigException(
                    name + " is not a setting of BrokerPlanAssignor; it has " + DEFINITION.names() + " and " + CLIENT + "…");
            }
        });
        client.putIfAbsent("client.id", "evenlag-plan-" + node);
    }

    private BrokerSettings(AbstractConfig config, Map<String, Object> client) {
        this(config.getString(TOPIC), config.getInt("node.id"), Duration.ofMillis(config.getInt(CHECK_INTERVAL)),
            Duration.ofMillis(config.getInt(READ_TIMEOUT)), client);
    }
}
