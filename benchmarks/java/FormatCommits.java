import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

import com.sun.management.OperatingSystemMXBean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.tools.consumer.OffsetsMessageFormatter;

/**
 * Measures the formatter of kafka-console-consumer on records in memory, printed to nowhere: lines "KEY VALUE" in hex on
 * stdin; as many runs as the argument says, each a line with the processor seconds of the whole process.
 */
public class FormatCommits {
    public static void main(String[] arguments) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split(" ");
            HexFormat hex = HexFormat.of();
            records.add(new ConsumerRecord<>("t", 0, 0, hex.parseHex(parts[0]), hex.parseHex(parts[1])));
        }
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        OffsetsMessageFormatter formatter = new OffsetsMessageFormatter();
        PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
        for (int run = 0; run < Integer.parseInt(arguments[0]); run++) {
            long before = system.getProcessCpuTime();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                formatter.writeTo(record, nowhere);
            }
            System.out.println((system.getProcessCpuTime() - before) / 1e9);
        }
    }
}
