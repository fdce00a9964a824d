"""What lies in a data directory, by size, by key, by age: reports, each a query that can be read."""
