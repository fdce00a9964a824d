"""The transaction coordinator: one pure machine per partition of ``__transaction_state`` (KIP-98, KIP-360, KIP-890).

``machine`` decides, ``transitions`` builds the record of a step, ``epochs`` assigns producer ids and epochs, ``ending``
checks EndTxn against the state; ``states`` holds the tables that all of them follow.
"""
