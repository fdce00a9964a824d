"""`understudy completion bash|zsh|fish`: a script that completes commands, verbs and options."""

from collections.abc import Mapping, Sequence

from understudy.argparser import Parser
from understudy.cli import COMMANDS
from understudy.control_api.verbs import groups
from understudy.ctl import DESCRIBED
from understudy.repeating import can_follow, can_watch
from understudy.serve import OPTIONS

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
    """Beginning of a command line -> its possible next arguments."""
    found: dict[str, Sequence[str]] = {
        "": [*COMMANDS, "--help", "--version"],
        "serve": [f"--{option.name}" for option in OPTIONS],
        "completion": SHELLS,
    }
    found["ctl"] = [group for group, _ in groups()]
    for group, verbs in groups():
        following = [verb.name.partition(" ")[2] for verb in verbs if " " in verb.name]
        following += ["describe"] * any(verb.name in DESCRIBED for verb in verbs)
        if following:
            found[f"ctl {group}"] = following
        for verb in verbs:
            found[f"ctl {verb.name}"] = found.get(f"ctl {verb.name}", ()) or [
                *(f"--{row.name.replace('_', '-')}" for row in verb.parameters if not row.required),
                *(["--watch", "--every"] if can_watch(verb) else []),
                *(["--follow"] if can_follow(verb) else []),
                *("--control", "--token", "--json"),
            ]
            if verb.name in DESCRIBED:
                found[f"ctl {group} describe"] = found[f"ctl {verb.name}"]
    return found


def bash() -> str:
    """For bash: the longest known beginning of the line decides."""
    cases = "\n".join(f'    "{line}") COMPREPLY=($(compgen -W "{" ".join(follow)}" -- "$current"));;'
                      for line, follow in tree().items())  # fmt: skip
    return f"""_understudy() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" line="${{COMP_WORDS[*]:1:COMP_CWORD-1}}"
  case "$line" in "serve "*) line="serve";; "ctl "*" "*" "*) line="$(echo "$line" | cut -d' ' -f1-3)";; esac
  COMPREPLY=()
  case "$line" in
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
    for line, follow in tree().items():
        if line:
            test = " && ".join(f"__fish_seen_subcommand_from {part}" for part in line.split())
            out.append(f"complete -c understudy -f -n '{test}' -a '{' '.join(follow)}'")
    return "\n".join(out) + "\n"
