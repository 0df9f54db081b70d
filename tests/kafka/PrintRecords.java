import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;

/** Prints records of __consumer_offsets as Kafka reads them: a line "KEY VALUE" in hex, "-" for null, gives a line of JSON. */
public class PrintRecords {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split(" ");
            ObjectNode json = new ObjectNode(JsonNodeFactory.instance);
            try {
                CoordinatorRecord record = new GroupCoordinatorRecordSerde().deserialize(bytes(parts[0]), bytes(parts[1]));
                json.put("type", record.key().apiKey());
                json.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
                if (record.value() != null) {
                    json.put("version", record.value().version());
                    json.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                        record.value().message(), record.value().version()));
                }
            } catch (RuntimeException error) {
                json.put("error", String.valueOf(error.getMessage()));
            }
            System.out.println(json);
        }
    }

    private static ByteBuffer bytes(String hex) {
        return hex.equals("-") ? null : ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }
}
