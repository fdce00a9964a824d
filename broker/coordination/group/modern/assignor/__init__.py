"""The server-side assignors."""
