"""Keys and values of a schema registry: schema ids in the wire format, and decoding to JSON."""
