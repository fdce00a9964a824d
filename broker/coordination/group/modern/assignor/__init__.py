"""Server-side assignors."""
