"""Checks of a broker's responses in a wire journal: alone, against their requests and against each other."""
