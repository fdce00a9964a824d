"""Keys and values that were written with schemas: the ids in the registries' wire format, and what they decode to."""
