"""The commands of `understudy` that run on Spark: one module each, with `main(arguments) -> exit code`."""
