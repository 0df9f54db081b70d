package io.evenlag;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

/** An application of Kafka Streams that reads topics together; the first argument is its JSON: properties, topics. */
public final class StreamsMember {
    private StreamsMember() {
    }

    public static void main(String[] arguments) throws Exception {
        JsonNode config = new ObjectMapper().readTree(arguments[0]);
        List<String> topics = new ArrayList<>();
        config.get("topics").forEach(topic -> topics.add(topic.asText()));
        Properties properties = new Properties();
        config.get("properties").properties().forEach(e -> properties.put(e.getKey(), e.getValue().asText()));
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(topics, Consumed.with(Serdes.String(), Serdes.String()))
            .foreach((key, value) -> System.out.println(value));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.start();
        System.in.read();  // until the test closes it
        streams.close();
    }
}
