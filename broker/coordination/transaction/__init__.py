"""The transaction coordinator: one pure machine per partition of ``__transaction_state`` (KIP-98, KIP-360, KIP-890).

``machine`` decides, ``transitions`` says what a step writes, ``epochs`` who gets which producer id and epoch,
``ending`` what EndTxn may do in which state; ``states`` holds the tables that all of them follow.
"""
