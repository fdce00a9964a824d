"""Generates the source of understudy/aio/verbs.py: a class per part of a cluster, a method per verb."""

import re
from collections.abc import Mapping

from control_api.fields import Field, Kind, fields_of, kind_of
from control_api.parameters import Parameter
from control_api.verb import PLACES, Verb
from control_api.verbs import VERBS

HEAD = '''"""The methods of the client that only pass on what their row in `control_api.verbs` has.

Made by tools/generate_client.py. Change the row; or write the method by hand in a class that inherits from these.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from understudy import results
from understudy.aio.resource import AsyncPart, without_none
from understudy.from_json import build
'''


def module(by_hand: Mapping[str, set[str]]) -> str:
    """Return the module's source. `by_hand`: class -> methods that are left out."""
    classes: dict[str, list[Verb]] = {}
    for verb in VERBS:
        classes.setdefault(class_of(verb), []).append(verb)
    parts = [HEAD]
    for name, verbs in classes.items():
        methods = [method(verb) for verb in verbs if method_name(verb) not in by_hand.get(name, ())]
        where = ".".join(["kafka", *way(verbs[0])[:-1]])
        parts.append(f'\n\nclass {name}(AsyncPart):\n    """The verbs of `{where}`."""\n')
        parts += [f"\n{each}" for each in methods]
    return "".join(parts)


def way(verb: Verb) -> list[str]:
    """Return the attributes that lead to a verb's method, and the method: topics, partitions[partition], show."""
    return verb.python.partition("(")[0].split(".")


def method_name(verb: Verb) -> str:
    """Return the last of them."""
    return way(verb)[-1]


def class_of(verb: Verb) -> str:
    """Return TopicsVerbs for topics.list(), TopicVerbs for topics[topic].show(), ClusterVerbs for health()."""
    *_, last = ["cluster", *way(verb)[:-1]]
    name, subscript, _ = last.partition("[")
    return f"{(name.removesuffix('s') if subscript else name).capitalize()}Verbs"


def method(verb: Verb) -> str:
    """Return the source of a verb's method."""
    positional = [
        name.strip()
        for name in re.findall(r"\((.*)\)", verb.python)[0].split(",")
        if re.fullmatch(r"\w+", name.strip())
    ]
    known = {each.name: each for each in verb.parameters}
    first = [argument(name, known) for name in positional]
    rest = [
        keyword(each)
        for each in sorted(known.values(), key=lambda each: not each.required)
        if each.name not in positional
    ]
    signature = ", ".join(["self", *first, *(["*", *rest] if rest else [])])
    passed = [f"{name}={sent(known[name]) if name in known else name}" for name in positional]
    passed += [f"{each.name}={sent(each)}" for each in known.values() if each.required and each.name not in positional]
    perhaps = [f"{each.name}={each.name}" for each in known.values() if not each.required]
    if perhaps:
        passed.append(f"**without_none({', '.join(perhaps)})")
    request = f"await self._ask({', '.join([repr(verb.name).replace(chr(39), chr(34)), *passed])})"
    returned, lines = body(verb, request)
    text = f"{verb.help[0].upper()}{verb.help[1:]}."
    return "".join(
        f"    {line}\n"
        for line in (
            f"async def {method_name(verb)}({signature}) -> {returned}:",
            f'    """{text}"""',
            *(f"    {line}" for line in lines),
        )
    )


def argument(name: str, known: Mapping[str, Parameter]) -> str:
    """Return a positional argument: a field of the body, or a name in the path."""
    if name in known:
        return f"{name}: {annotation(known[name].field.kind)}"
    return f"{name}: {PLACES.get(name, str).__name__}"


def keyword(parameter: Parameter) -> str:
    """Return a keyword argument."""
    kind = parameter.field.kind
    if parameter.required:
        return f"{parameter.name}: {annotation(kind)}"
    return f"{parameter.name}: {annotation(kind._replace(nullable=True))} = None"


def sent(parameter: Parameter) -> str:
    """Return the expression that passes on a required argument."""
    return f"list({parameter.name})" if parameter.field.kind.is_list else parameter.name


def annotation(kind: Kind) -> str:
    """Return a type annotation."""
    if kind.choices:
        python_type = f"Literal[{', '.join(map(quoted, kind.choices))}]"
    elif kind.is_list:
        python_type = f"Sequence[{annotation(kind.inner[0])}]"
    elif kind.is_mapping:
        python_type = f"Mapping[str, {annotation(kind.inner[1])}]"
    else:
        python_type = kind.type.__name__
    return f"{python_type} | None" if kind.nullable else python_type


def quoted(value: object) -> str:
    """Return a value of a Literal."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def body(verb: Verb, request: str) -> tuple[str, list[str]]:
    """Return the type and the statements of a method's result: an object, a list, a file's bytes, or nothing."""
    if verb.is_file:
        return "bytes", [f"content: bytes = {request}", "return content"]
    answer = kind_of(verb.answer_type)
    if isinstance(answer.type, type) and not issubclass(answer.type, dict):
        name = f"results.{answer.type.__name__}"
        return name, [f"return build({name}, {request})"]
    items: Field | None = fields_of(answer.type).get(verb.items)
    if items is None:
        return "None", [request]
    name = f"results.{items.kind.inner[0].type.__name__}"
    collection = "Sequence" if method_name(verb) == "list" else "list"  # within the class, `list` is the method
    built = f'[build({name}, each) for each in result["{verb.items}"]]'
    return f"{collection}[{name}]", [f"result = {request}", f"return {built}"]
