"""Write requests, one module for each API. Generated, with this line."""
