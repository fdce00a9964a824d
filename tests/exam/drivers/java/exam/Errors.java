package exam;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnsupportedVersionException;

/** What the library threw, classified as the javadoc of KafkaProducer tells applications to. */
final class Errors {
    private Errors() { }

    static Map<String, Object> of(Throwable thrown) {
        Throwable error = thrown instanceof ExecutionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("class", kind(error));
        out.put("code", code(error));
        out.put("message", error.getClass().getSimpleName() + ": " + error.getMessage());
        return out;
    }

    private static String kind(Throwable error) {
        if (error instanceof ProducerFencedException || error instanceof OutOfOrderSequenceException
                || error instanceof AuthorizationException || error instanceof UnsupportedVersionException
                || error instanceof FencedInstanceIdException) return "fatal";
        // Since 4.0 the library says that only another producer can go on (KIP-1050).
        for (Class<?> each = error.getClass(); each != null; each = each.getSuperclass())
            if (each.getSimpleName().equals("ApplicationRecoverableException")) return "fatal";
        if (error instanceof TimeoutException) return "timeout";
        if (error instanceof RetriableException) return "retriable";
        if (error instanceof org.apache.kafka.common.KafkaException) return "abortable";
        return "other";
    }

    private static String code(Throwable error) {
        if (!(error instanceof ApiException)) return null;
        return org.apache.kafka.common.protocol.Errors.forException(error).name();
    }
}
