package orders;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Sends an invoice for each order. */
@SpringBootApplication
public class Application {
    public static void main(String[] arguments) { SpringApplication.run(Application.class, arguments); }
}
