import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;

/** Reads records of __consumer_offsets and writes them by Kafka's own serializer: lines "KEY VALUE" in hex, both ways. */
public class RewriteRecords {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        HexFormat hex = HexFormat.of();
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split(" ");
            CoordinatorRecord record = serde.deserialize(
                ByteBuffer.wrap(hex.parseHex(parts[0])), ByteBuffer.wrap(hex.parseHex(parts[1])));
            System.out.println(hex.formatHex(serde.serializeKey(record)) + " " + hex.formatHex(serde.serializeValue(record)));
        }
    }
}
