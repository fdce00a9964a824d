"""The request journal: the ring in memory, and the files of ``--journal DIR``, written by a process of their own."""
