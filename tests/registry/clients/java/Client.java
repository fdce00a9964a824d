// Spring Cloud's client of Confluent's registry, with Avro for Java: java -cp 'DIR/*' Client.java URL SCHEMA...
// Prints a JSON document: what was written and read again, and each schema as Java's Avro writes it.
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.springframework.cloud.schema.registry.SchemaReference;
import org.springframework.cloud.schema.registry.client.ConfluentSchemaRegistryClient;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.web.client.RestTemplate;

public class Client {
    static final String ORDER =
            "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"id\",\"type\":\"string\"}]}";

    static ConfluentSchemaRegistryClient client(String url) {
        ConfluentSchemaRegistryClient made = new ConfluentSchemaRegistryClient(new RestTemplate(new SimpleClientHttpRequestFactory()));
        made.setEndpoint(url);
        return made;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        Schema schema = new Schema.Parser().parse(ORDER);
        int id = client(args[0]).register("orders-value", "avro", schema.toString()).getId();
        GenericRecord order = new GenericData.Record(schema);
        order.put("id", "a");
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.write(0);
        bytes.write(ByteBuffer.allocate(4).putInt(id).array());
        var encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        new GenericDatumWriter<GenericRecord>(schema).write(order, encoder);
        encoder.flush();

        ByteBuffer read = ByteBuffer.wrap(bytes.toByteArray());
        read.get();
        ConfluentSchemaRegistryClient reader = client(args[0]);
        Schema writer = new Schema.Parser().parse(reader.fetch(read.getInt()));
        var decoder = DecoderFactory.get().binaryDecoder(read.array(), read.position(), read.remaining(), null);
        found.put("id", id);
        found.put("read", new GenericDatumReader<GenericRecord>(writer).read(null, decoder).toString());
        found.put("version", new Schema.Parser().parse(reader.fetch(new SchemaReference("orders-value", 1, "avro"))).toString());
        List<String> written = new ArrayList<>();
        for (int at = 1; at < args.length; at++) {
            written.add(new Schema.Parser().parse(args[at]).toString());
        }
        found.put("written", written);
        System.out.println(new ObjectMapper().writeValueAsString(found));
    }
}
