"""The program of a process that has imported server and proxy and forks whenever one is wanted (``tests/forking.py``).

A server that is forked answers after a tenth of the time that it takes to start one from nothing, and is a process all
the same: it has its own descriptors, environment and working folder, can be killed, and ends with its lifeline.

It is started with the descriptor of a socket and is asked in JSON, one message each:
``{"argv": [...], "env": {...}, "cwd": "..."}`` with standard input and standard error attached answers ``{"pid": n}``;
``{"wait": pid}`` answers ``{"code": n}`` as ``Popen.returncode`` has it.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

MOST_BYTES = 1 << 17
"""Of a message."""
IMPORTED = (
    "understudy.cli",
    "understudy.serve",
    "understudy.lifeline",
    "broker.start.cli",
    "broker.start.server",
    "broker.control.app",
    "anyio._backends._asyncio",
    "uvicorn.protocols.http.h11_impl",
    "uvloop",
    "registry.server",
    "registry.app",
    "proxy.cli",
    "proxy.server",
    "proxy.verbs",
)


def main() -> None:
    """Answer until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and their end ends this
    root = str(Path(__file__).resolve().parent.parent)
    sys.path.append(root)
    importlib.import_module("understudy.server_path").enter()
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is imported stays in memory that all forks share
    connection = socket.socket(fileno=int(sys.argv[1]))
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 2)
        if not message:
            return
        request = json.loads(message)
        if "wait" in request:
            answer = {"code": os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])}
        else:
            pid = os.fork()
            if pid == 0:
                connection.close()
                become(request, *descriptors)
            for each in descriptors:
                os.close(each)
            answer = {"pid": pid}
        connection.send(json.dumps(answer).encode())


def become(request: dict[str, Any], stdin: int, stderr: int) -> NoReturn:
    """Run the command line in this process, and end it."""
    code: Any = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stdout = os.open(os.devnull, os.O_WRONLY)
        for number, each in enumerate((stdin, stdout, stderr)):
            os.dup2(each, number)
            os.close(each)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = ["understudy", *request["argv"]]
        importlib.import_module("tests.differential.next_id").read_by_servers()
        code = importlib.import_module("understudy.cli").main(request["argv"])
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - the interpreter would do the same
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
