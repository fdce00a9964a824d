"""What clients did on the wire, held against the protocol: told from a journal, and two runs compared."""
