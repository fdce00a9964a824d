"""The door to the pipeline: finds Spark and Java, says in one sentence what lacks, and only then enters the rooms.

The commands `audit`, `export`, `load`, `report` and `conformance` are thin: each parses its words, calls
`enter`, and gives them to the module of its name in `pipeline.commands`.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from understudy import rooms
from understudy.java import NoJavaError, find_java
from understudy.launcher import ServerProcess, words
from understudy.parser import Parser, refuse


def enter(program: str) -> None:
    """Make this process one that can run Spark, or leave it with exit code 2 and one sentence."""
    lacking = [name for name in ("pyspark", "pyarrow", "numpy") if importlib.util.find_spec(name) is None]
    if lacking:
        refuse(program, f"{lacking[0]} is not installed; say: pip install 'understudy[spark]'")
    try:
        os.environ["JAVA_HOME"] = str(find_java())
    except NoJavaError as error:
        refuse(program, str(error))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    rooms.enter()
    known = os.environ.get("PYTHONPATH", "")
    if str(rooms.folder()) not in known.split(os.pathsep):  # Spark's workers on this machine find the rooms by it
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(rooms.folder()), known)))


def run(program: str, command: str, said: Mapping[str, object]) -> int:
    """Enter, and let `pipeline.commands.COMMAND` do what was said; returns the exit code."""
    enter(program)
    register = importlib.import_module("understudy.spark").register
    module = importlib.import_module(f"pipeline.commands.{command}")
    code: int = module.main({**said, "register": register, "serve": serve})
    return code


@contextmanager
def serve(directory: str) -> Iterator[str]:
    """A broker over a data directory, for as long as it takes; its address. Raises StartError."""
    server = ServerProcess(words(data_dir=directory, port=0, control_port="off"))
    try:
        yield server.ready.bootstrap_servers[0]
    finally:
        server.stop()


def parser(program: str, description: str, epilog: str = "") -> Parser:
    """The parser of one of the commands, with the options that all of them have."""
    made = Parser(prog=program, description=description, epilog=epilog)
    made.add_argument("--master", metavar="URL", default="local[*]", help="Spark's master (default local[*])")
    made.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return made
