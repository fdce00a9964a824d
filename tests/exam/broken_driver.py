"""A driver of a library that loses each record and reports none: for tests of the command that runs it."""

import json
import sys

HELLO = {"protocol": 1, "library": "broken", "version": "1", "capabilities": ["producer"]}

if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        result = HELLO if request["command"] == "hello" else {"outcomes": [], "pending": 0}
        print(json.dumps({"id": request["id"], "result": result}), flush=True)  # noqa: T201 - the contract
