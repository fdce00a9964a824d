"""Entry point of the pipeline's commands: finds Spark and Java, or exits with one sentence about what is missing.

The commands `audit`, `export`, `load`, `report` and `conformance` only parse their command line; `run`
calls `enter` and then the module of the same name in `pipeline.commands`.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from understudy import output_files, server_path
from understudy.argparser import Parser, refuse
from understudy.java import NoJavaError, find_java
from understudy.launcher import ServerProcess, command_line


def enter_pipeline(program: str, *, with_spark: bool = True) -> None:
    """Make the pipeline's code importable, or exit with code 2 and one sentence."""
    needed = ("pyspark", "pyarrow", "numpy") if with_spark else ("pyarrow", "numpy")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        small = " (or, for what is small and without Java, 'understudy-kafka[duckdb]')" if not with_spark else ""
        refuse(program, f"{missing[0]} is not installed; run: pip install 'understudy-kafka[spark]'{small}")
    server_path.enter()


def enter(program: str) -> None:
    """Prepare this process for Spark, or exit with code 2 and one sentence."""
    enter_pipeline(program)
    try:
        os.environ["JAVA_HOME"] = str(find_java())
    except NoJavaError as error:
        refuse(program, str(error))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = os.environ.get("PYTHONPATH", "")
    if str(server_path.folder()) not in paths.split(os.pathsep):  # for Spark's workers on this machine
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(server_path.folder()), paths)))


def run(program: str, command: str, arguments: Mapping[str, Any]) -> int:
    """Run `pipeline.commands.COMMAND` with these arguments; returns the exit code."""
    try:
        if command not in {"export", "load"} and arguments["out"]:
            output_files.check(arguments["out"], "--out")
        if arguments.get("plots"):
            output_files.make_folder(arguments["plots"], "--plots")
    except output_files.OutputFileError as error:
        refuse(program, str(error))

    def write(path: str | Path, content: bytes, option: str) -> None:
        try:
            output_files.write(path, content, option)
        except output_files.OutputFileError as error:
            refuse(program, str(error))

    def enter_spark(*, sources: bool) -> Any:
        """Prepare this process for Spark; return the function that prepares a session, with the data sources or not.

        For these Spark starts a Python of its own, which costs seconds, and tasks that are functions need none.
        """
        enter(program)
        spark = importlib.import_module("understudy.spark")
        return spark.register if sources else spark.prepare

    more: dict[str, Any] = {"serve": serve, "write": write, "enter_spark": enter_spark}
    enter_pipeline(program, with_spark=False)
    module = importlib.import_module(f"pipeline.commands.{command}")
    code: int = module.main({**arguments, **more})
    return code


@contextmanager
def serve(directory: str) -> Iterator[str]:
    """Run a broker on a data directory within the block; yield its address. Raises StartError."""
    server = ServerProcess(command_line(data_dir=directory, port=0, control_port="off"))
    try:
        yield server.ready.bootstrap_servers[0]
    finally:
        server.stop()


def spark_above(parser: Parser) -> None:
    """Add the option of the commands that need Spark for large inputs only."""
    parser.add_argument(
        "--spark-above", metavar="MB", type=int,
        help="start Spark if the files are larger than this (0: always; default: where it is faster)",
    )  # fmt: skip


def parser(program: str, description: str, epilog: str = "") -> Parser:
    """Return the parser of a command, with the common options."""
    parser = Parser(prog=program, description=description, epilog=epilog)
    parser.add_argument("--master", metavar="URL", default="local[*]", help="Spark master (default local[*])")
    parser.add_argument("--quiet", action="store_true", help="do not show progress on stderr")
    return parser
