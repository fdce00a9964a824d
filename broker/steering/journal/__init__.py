"""The request journal: a ring in memory, and the files of ``--journal DIR``, which a separate process writes."""
