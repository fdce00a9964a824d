"""Bytes to messages and back, without any input or output of its own. The only package that imports kio."""
