"""Decodes segment bytes into Arrow, column by column instead of record by record; no byte is trusted unchecked."""
