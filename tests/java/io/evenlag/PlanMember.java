package io.evenlag;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Java consumers for tests, one in a thread each. A line of JSON on stdin starts one (name, properties, topics,
 * watched, handling in ms), "leave NAME" ends one, and the end of stdin all. Events go to stdout, a line of JSON each.
 */
public final class PlanMember implements Runnable, ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Set<String> LEAVING = ConcurrentHashMap.newKeySet();

    private final JsonNode config;
    private final String name;

    private PlanMember(JsonNode config) {
        this.config = config;
        this.name = config.get("name").asText();
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Thread> threads = new HashMap<>();
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = words.readLine(); line != null; line = words.readLine()) {
            if (line.startsWith("leave ")) {
                String name = line.substring("leave ".length());
                LEAVING.add(name);
                threads.remove(name).join();
                LEAVING.remove(name);
            } else {
                PlanMember member = new PlanMember(JSON.readTree(line));
                Thread thread = new Thread(member, member.name);
                threads.put(member.name, thread);
                thread.start();
            }
        }
        LEAVING.addAll(threads.keySet());
        for (Thread thread : threads.values()) {
            thread.join();
        }
    }

    @Override
    public void run() {
        Properties properties = new Properties();
        config.get("properties").properties().forEach(e -> properties.put(e.getKey(), e.getValue().asText()));
        properties.putIfAbsent("client.id", name);
        Consumer<String, String> plain = new KafkaConsumer<>(properties);
        try (Consumer<String, String> consumer = config.path("watched").asBoolean() ? PlanWatcher.watching(plain) : plain) {
            List<String> topics = new ArrayList<>();
            config.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, this);
            while (!LEAVING.contains(name)) {
                process(consumer, consumer.poll(Duration.ofMillis(50)));
            }
            consumer.commitSync();
        } catch (Exception exception) {
            say("failed", JSON.createObjectNode().put("line", exception.toString()));
        }
        say("left", JSON.createObjectNode());
    }

    private void process(Consumer<String, String> consumer, ConsumerRecords<String, String> records)
        throws InterruptedException {
        if (!records.isEmpty()) {
            ObjectNode event = JSON.createObjectNode();
            ArrayNode numbers = event.putArray("numbers");
            ArrayNode partitions = event.putArray("partitions");
            for (ConsumerRecord<String, String> record : records) {
                numbers.add(Integer.parseInt(record.value()));
            }
            records.partitions().forEach(each -> partitions.addArray().add(each.topic()).add(each.partition()));
            say("read", event);
            Thread.sleep(config.path("handling").asLong());
            consumer.commitAsync();
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        ObjectNode event = with(partitions);
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            for (ObjectName bean : server.queryNames(new ObjectName("io.evenlag:client-id=\"" + name + "\",*"), null)) {
                for (String figure : List.of("PlanVersion", "PlanVersionInForce", "PartitionsByPlan",
                    "PartitionsByFallback", "RebalancesAskedFor")) {
                    event.put(figure, ((Number) server.getAttribute(bean, figure)).longValue());
                }
                event.put("Trouble", (String) server.getAttribute(bean, "Trouble"));
            }
        } catch (Exception exception) {
            event.put("line", exception.toString());
        }
        say("assigned", event);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        say("revoked", with(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        say("lost", with(partitions));
    }

    private static ObjectNode with(Collection<TopicPartition> partitions) {
        ObjectNode event = JSON.createObjectNode();
        ArrayNode pairs = event.putArray("partitions");
        partitions.forEach(each -> pairs.addArray().add(each.topic()).add(each.partition()));
        return event;
    }

    private void say(String what, ObjectNode event) {
        event.put("event", what).put("t", System.nanoTime() / 1e9).put("member", name);
        synchronized (PlanMember.class) {
            System.out.println(event);
        }
    }
}
