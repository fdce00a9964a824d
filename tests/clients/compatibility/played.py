"""How the clients in Python are asked: lines of BOOTSTRAP NAME, each answered step by step and at last with "end".

A third item is a codec: then records are produced with it, and nothing else is played.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

PATIENCE_S = 30


def write(line: str) -> None:
    """To the test."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def name_of(error: Exception) -> str:
    """The simple name of an exception, as the clients in Java print it."""
    return type(error).__name__


def answer(steps: Mapping[str, Callable[..., None]], name: Callable[[Any], str] = name_of) -> None:
    """Play what is asked, line by line; the name of what went wrong is the client's own."""
    for line in sys.stdin:
        arguments = line.split()
        for step, play in steps.items():
            try:
                play(*arguments)
                result = "ok"
            except Exception as error:  # noqa: BLE001 - any exception of a client is a result
                result = name(error)
            write(f"{step} {result}")
            if step == "produce" and (result != "ok" or len(arguments) > 2):
                break
        write("end")
