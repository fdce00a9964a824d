"""`understudy completion bash|zsh|fish`: a script that completes commands, verbs and options."""

from collections.abc import Mapping, Sequence

from control_api.verbs import groups
from understudy.argparser import Parser
from understudy.cli import COMMANDS
from understudy.completed_names import KINDS, kind_of_place, names
from understudy.ctl import DESCRIBED, address
from understudy.repeating import can_follow, can_watch
from understudy.serve import OPTIONS
from understudy.transport import Transport

SHELLS = ("bash", "zsh", "fish")


def main(argv: Sequence[str]) -> int:
    """Print the script; to use it: `source <(understudy completion bash)`. `names KIND`: names on a running server."""
    if len(argv) == 2 and argv[0] == "names" and argv[1] in KINDS:
        print("".join(f"{name}\n" for name in names(argv[1], Transport(address({})))), end="")
        return 0
    parser = Parser(
        prog="understudy completion", description="Print a completion script: source <(understudy completion bash)"
    )
    parser.add_argument("shell", choices=SHELLS)
    shell = parser.parse_args(argv).shell
    print({"bash": bash, "zsh": zsh, "fish": fish}[shell](), end="")
    return 0


def places() -> Mapping[str, str]:
    """Return the beginnings of `ctl` command lines -> the kind of name that comes next."""
    kinds_by_line = {}
    for group, verbs in groups():
        for verb in verbs:
            if kind := kind_of_place(verb):
                kinds_by_line[f"ctl {verb.name}"] = kind
                if verb.name in DESCRIBED:
                    kinds_by_line[f"ctl {group} describe"] = kind
    return kinds_by_line


def tree() -> Mapping[str, Sequence[str]]:
    """Return the beginnings of command lines -> their possible next arguments."""
    next_by_line: dict[str, Sequence[str]] = {
        "": [*COMMANDS, "--help", "--version"],
        "serve": [f"--{option.name}" for option in OPTIONS],
        "completion": SHELLS,
    }
    next_by_line["ctl"] = [group for group, _ in groups()]
    for group, verbs in groups():
        following = [verb.name.partition(" ")[2] for verb in verbs if " " in verb.name]
        following += ["describe"] * any(verb.name in DESCRIBED for verb in verbs)
        if following:
            next_by_line[f"ctl {group}"] = following
        for verb in verbs:
            next_by_line[f"ctl {verb.name}"] = next_by_line.get(f"ctl {verb.name}", ()) or [
                *(f"--{row.name.replace('_', '-')}" for row in verb.parameters if not row.required),
                *(["--watch", "--every"] if can_watch(verb) else []),
                *(["--follow"] if can_follow(verb) else []),
                *("--control", "--token", "--json"),
            ]
            if verb.name in DESCRIBED:
                next_by_line[f"ctl {group} describe"] = next_by_line[f"ctl {verb.name}"]
    return next_by_line


def bash() -> str:
    """Return the script for bash: the longest known beginning decides. The shell never expands names."""
    cases = "\n".join(f'    "{line}") COMPREPLY=($(compgen -W "{" ".join(follow)}" -- "$current"));;'
                      for line, follow in tree().items())  # fmt: skip
    kinds = "\n".join(f'    "{line}") kind={kind};;' for line, kind in places().items())
    options = "\n".join(f"    --{kind.replace('_', '-')}) kind={kind};;" for kind in KINDS)
    return f"""_understudy() {{
  local -a typed=("${{COMP_WORDS[@]}}")
  local current="${{typed[COMP_CWORD]}}" line="${{typed[*]:1:COMP_CWORD-1}}" kind="" name=""
  case "$line" in
{kinds}
  esac
  case "${{typed[COMP_CWORD-1]}}" in
{options}
  esac
  case "$line" in "serve "*) line="serve";; "ctl "*" "*" "*) line="$(echo "$line" | cut -d' ' -f1-3)";; esac
  COMPREPLY=()
  if [ -n "$kind" ] && [ "${{current#-}}" = "$current" ]; then
    while IFS= read -r name; do
      case "$name" in "$current"*) COMPREPLY+=("$(printf %q "$name")");; esac
    done < <("${{typed[0]}}" completion names "$kind" 2>/dev/null)
    return
  fi
  case "$line" in
{cases}
  esac
}}
complete -o default -F _understudy understudy
"""


def zsh() -> str:
    """Return the script for zsh, which uses bash's."""
    return f"#compdef understudy\nautoload -U +X bashcompinit && bashcompinit\n{bash()}"


def fish() -> str:
    """Return the script for fish."""
    out = ["complete -c understudy -f -n __fish_use_subcommand -a '" + " ".join(tree()[""]) + "'"]
    for line, follow in tree().items():
        if line:
            test = " && ".join(f"__fish_seen_subcommand_from {part}" for part in line.split())
            out.append(f"complete -c understudy -f -n '{test}' -a '{' '.join(follow)}'")
    for line, kind in places().items():
        test = " && ".join(f"__fish_seen_subcommand_from {part}" for part in line.split())
        out.append(f"complete -c understudy -f -n '{test}' -a '(understudy completion names {kind})'")
    for kind in KINDS:
        option = kind.replace("_", "-")
        test = "__fish_seen_subcommand_from ctl"
        out.append(f"complete -c understudy -x -n '{test}' -l {option} -a '(understudy completion names {kind})'")
    return "\n".join(out) + "\n"
