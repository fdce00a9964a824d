"""The indexes of a segment."""
