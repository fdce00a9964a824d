"""The single description of the control plane: its verbs, request bodies and answers.

The server, the Python client, ``understudy ctl``, the OpenAPI document and the tables of docs/ are all generated from
this package. It imports nothing of the server and nothing slow, because test processes import it too.

* ``cluster``, ``brokers``, ``topics``, ``producers``, ``transactions``, ``groups``, ``faults``, ``journal``: the rows
  of their verbs (``VERBS``), with the types of request bodies, query parameters and acknowledgements. ``verbs``
  gathers them.
* ``answers``: the dataclasses that the Python client returns, and the lists of them.
* ``fields``: descriptions of fields by type annotations. ``reading``, ``encoding`` and ``schema`` turn them into
  validation, JSON and JSON schemas; ``parameters`` into options of ``ctl`` and arguments of Python's methods.
* ``spelling``: suggestions for misspelt names. ``times``: the format of times.

Bodies and queries are TypedDicts, since an absent field differs from a null one, and since keyword arguments of the
Python client have the same types (``Unpack``).
"""
