"""The messages of all APIs, one module each, with their readers and writers. Generated, with this line."""
