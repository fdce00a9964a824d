"""`understudy completion bash|zsh|fish`: a script that completes commands, verbs and options, made from the tables."""

from collections.abc import Mapping, Sequence

from understudy.cli import COMMANDS
from understudy.parser import Parser
from understudy.serve import OPTIONS
from understudy.verbs import groups

SHELLS = ("bash", "zsh", "fish")


def main(argv: Sequence[str]) -> int:
    """Print the script; to use it: `source <(understudy completion bash)`."""
    made = Parser(
        prog="understudy completion", description="Print a completion script: source <(understudy completion bash)"
    )
    made.add_argument("shell", choices=SHELLS)
    shell = made.parse_args(argv).shell
    print({"bash": bash, "zsh": zsh, "fish": fish}[shell](), end="")
    return 0


def tree() -> Mapping[str, Sequence[str]]:
    """What may follow which words."""
    found: dict[str, Sequence[str]] = {
        "": [*COMMANDS, "--help", "--version"],
        "serve": [f"--{option.name}" for option in OPTIONS if not option.hidden],
        "completion": SHELLS,
    }
    found["ctl"] = [word for word, _ in groups()]
    for word, verbs in groups():
        following = [verb.words.partition(" ")[2] for verb in verbs if " " in verb.words]
        if following:
            found[f"ctl {word}"] = following
        for verb in verbs:
            found[f"ctl {verb.words}"] = found.get(f"ctl {verb.words}", ()) or [
                *(f"--{row.name.replace('_', '-')}" for row in (*verb.query, *verb.body) if not row.required),
                *("--control", "--token", "--json"),
            ]
    return found


def bash() -> str:
    """For bash: the longest known beginning of the line decides."""
    cases = "\n".join(f'    "{words}") COMPREPLY=($(compgen -W "{" ".join(follow)}" -- "$current"));;'
                      for words, follow in tree().items())  # fmt: skip
    return f"""_understudy() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="${{COMP_WORDS[*]:1:COMP_CWORD-1}}"
  case "$words" in "serve "*) words="serve";; "ctl "*" "*" "*) words="$(echo "$words" | cut -d' ' -f1-3)";; esac
  COMPREPLY=()
  case "$words" in
{cases}
  esac
}}
complete -o default -F _understudy understudy
"""


def zsh() -> str:
    """For zsh: by way of bash's script."""
    return f"#compdef understudy\nautoload -U +X bashcompinit && bashcompinit\n{bash()}"


def fish() -> str:
    """For fish."""
    out = ["complete -c understudy -f -n __fish_use_subcommand -a '" + " ".join(tree()[""]) + "'"]
    for words, follow in tree().items():
        if words:
            test = " && ".join(f"__fish_seen_subcommand_from {word}" for word in words.split())
            out.append(f"complete -c understudy -f -n '{test}' -a '{' '.join(follow)}'")
    return "\n".join(out) + "\n"
