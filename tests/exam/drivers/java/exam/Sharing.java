package exam;

/** The commands of share groups, which old releases do not have. */
interface Sharing {
    /** The command's result; null: it is about another consumer. */
    Object run(Command command);

    /** What the release has: nothing answers each command with null. */
    static Sharing ofThisRelease() {
        try {
            return (Sharing) Class.forName("exam.ShareConsumers").getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException absent) {
            return command -> null;
        }
    }
}
