"""The journal in files (``--journal DIR``): the loop hands requests over as bytes, another process writes them."""
