"""The completion script, asked as bash asks it."""

import shlex
import subprocess

import pytest

from understudy import completion


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("se", "serve"),
        ("serve --as", "--as-version"),
        ("serve --port 1 --as", "--as-version"),
        ("ctl clo", "clock"),
        ("ctl clock a", "advance"),
        ("ctl faults add --api EndTxn --tr", "--transactional-id"),
        ("ctl transactions hold x --aft", "--after-markers"),
        ("ctl topics desc", "describe"),
        ("ctl groups describe g --wa", "--watch"),
        ("ctl journal list --fol", "--follow"),
        ("completion z", "zsh"),
    ],
)
def test_bash_completes_commands_verbs_and_options(line: str, offered: str) -> None:
    """The word under the cursor, in the light of the words before it."""
    words = ["understudy", *line.split()]
    ask = f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _understudy; echo ${{COMPREPLY[*]}}"
    done = subprocess.run(["bash", "-c", completion.bash() + ask], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, [offered]), done.stderr
