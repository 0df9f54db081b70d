import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.List;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.MessageFormatter;
import org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter;
import org.apache.kafka.tools.consumer.OffsetsMessageFormatter;

/** Prints records by the formatters of kafka-console-consumer: a line "KEY VALUE" in hex, "-" for null, gives a line. */
public class FormatRecords {
    public static void main(String[] arguments) throws Exception {
        List<MessageFormatter> formatters = List.of(new OffsetsMessageFormatter(), new GroupMetadataMessageFormatter());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split(" ");
            ConsumerRecord<byte[], byte[]> record = new ConsumerRecord<>("t", 0, 0, bytes(parts[0]), bytes(parts[1]));
            for (MessageFormatter formatter : formatters) {
                formatter.writeTo(record, System.out);
            }
            System.out.println();
        }
    }

    private static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HexFormat.of().parseHex(hex);
    }
}
