"""What the commands of the door do once the rooms are entered: one module each, `main(words) -> exit code`."""
