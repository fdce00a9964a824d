package understudy.junit;

/** The control plane rejected a request or does not answer, or the server cannot be started. */
public final class KafkaControlException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final int status;

    KafkaControlException(int status, String message, Throwable cause) {
        super(message, cause);
        this.status = status;
    }

    /** The HTTP status; 0 if there was no response. */
    public int status() { return status; }
}
