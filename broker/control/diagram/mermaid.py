"""Renders a diagram in Mermaid's language: https://mermaid.js.org/syntax/sequenceDiagram."""

from collections.abc import Iterator, Sequence

from control_api.answers.diagrams import Lane, Step

_PLAIN = frozenset(" .,:()/_+-=@'")
"""Characters that need no escape, besides letters and digits. Names come from clients, and in Mermaid a semicolon ends
a line, # starts an escape, and <, > and % are special too."""
_ARROWS = {"request": "->>", "answer": "-->>", "append": "->>", "marker": "->>"}


def mermaid(title: str, lanes: Sequence[Lane], steps: Sequence[Step]) -> str:
    """Render the whole diagram."""
    lines = ["sequenceDiagram", f"    title {_escaped(title)}"]
    for at, lane in enumerate(lanes):
        detail = f"<br/>{_escaped(lane.detail)}" if lane.detail else ""
        lines.append(f"    participant p{at} as {_escaped(lane.title)}{detail}")
    for step in steps:
        lines += [f"    {line}" for line in _lines(step)]
    return "\n".join(lines) + "\n"


def _lines(step: Step) -> Iterator[str]:
    label = _escaped(step.text + (f" x{step.count}" if step.count > 1 else ""))
    source, target = f"p{step.source}", f"p{step.target}"
    if step.kind == "gap" or step.source == step.target:
        yield f"Note over {source}: {label}"
    else:
        refused = step.kind in ("answer", "marker") and step.error is not None
        yield f"{source}{'--x' if refused else _ARROWS[step.kind]}{target}: {label}"
    if step.reason:
        yield f"Note over {source}: {_escaped(step.reason)}"


def _escaped(text: str) -> str:
    """Escape a text for Mermaid."""
    shown = "".join(
        character if character.isalnum() or character in _PLAIN else f"#{ord(character)};" for character in text
    )
    return shown.replace("end", "e#110;d")  # "end" ends a block
