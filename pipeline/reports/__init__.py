"""Reports on a data directory by size, key and age, each with its query."""
