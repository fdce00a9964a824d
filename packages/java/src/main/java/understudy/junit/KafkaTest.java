package understudy.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A test class with a mock Kafka cluster, reset before each test, or a new one for each. Tests, their lifecycle methods and the constructor
 * take it as a parameter of type {@link Cluster}.
 *
 * <p>Classes with the same options use the same cluster one after the other; those that run in parallel have one each. The tests of a class share its
 * cluster, so they wait for each other, also where JUnit would run them in parallel. A failed test prints the cluster's
 * report to the console and into the test's report; a passed one fails if no request matched one of its faults.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@ExtendWith(KafkaExtension.class)
public @interface KafkaTest {
    /** Number of brokers. */
    int brokers() default 1;

    /** Initial topics: NAME[:PARTITIONS[:KEY=VALUE,...]]. */
    String[] topics() default {};

    /** Settings of the brokers, by Kafka's names: KEY=VALUE. */
    String[] settings() default {};

    /** A new cluster for each test, where the server is shared, instead of a reset, which is faster. */
    boolean fresh() default false;

    /** Further options of {@code understudy serve}, one element for each argument. */
    String[] options() default {};
}
