"""The class of verbs, the rows of the table, with conversion of their arguments."""

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, NamedTuple, TypedDict
from urllib.parse import quote, urlencode

from control_api.fields import About
from control_api.parameters import Parameter, body_parameters, query_parameters


class Verb(NamedTuple):
    """One operation of the control plane, over HTTP, in Python and in the shell."""

    name: str
    """The name, such as `topics create`: the arguments of `understudy ctl`."""
    method: str
    path: str
    python: str
    """The Python attributes that lead to the method, and its positional arguments; all others are keyword arguments."""
    help: str
    query: Any = None
    """The TypedDict of the query parameters."""
    body: Any = None
    """The TypedDict of the request body."""
    answer: Any = None
    """The type of the answer; or its name, MODULE.NAME in ``answers``, whose dataclasses are imported when they are
    needed. None if the answer is not JSON."""
    items: str = ""
    """The list in the answer that ``ctl`` prints as a table, and the table's columns."""
    columns: tuple[str, ...] = ()
    media: str = "application/json"
    status: int = 200
    """The status of the response."""
    example: Mapping[str, Any] | None = None
    """Arguments of an example call, which a test runs and the documentation shows."""

    @property
    def is_file(self) -> bool:
        """Return whether the answer is binary and is saved to a file."""
        return self.media not in {"application/json", "text/plain"}

    @property
    def places(self) -> tuple[str, ...]:
        """Return the names in the path, in order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def answer_type(self) -> Any:
        """Return the type of the answer, importing its module if necessary."""
        if not isinstance(self.answer, str):
            return self.answer
        module, _, name = self.answer.partition(".")
        return getattr(import_module(f"{__package__}.answers.{module}"), name)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the arguments besides the names in the path."""
        return (*(query_parameters(self.query) if self.query else ()), *self.fields)

    @property
    def fields(self) -> tuple[Parameter, ...]:
        """Return the arguments that go into the body."""
        return tuple(body_parameters(self.body)) if self.body else ()

    def target(self, arguments: Mapping[str, Any]) -> str:
        """Return path and query string with their arguments."""
        path = self.path
        for name in self.places:
            path = path.replace(f"{{{name}}}", quote(str(arguments[name]), safe=""))
        texts = self.query_texts(arguments)
        return f"{path}?{urlencode(texts)}" if texts else path

    def query_texts(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Return the query parameters with their arguments."""
        names = [parameter.name for parameter in query_parameters(self.query)] if self.query else ()
        query = {name: arguments[name] for name in names if arguments.get(name) is not None}
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}

    def document(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the JSON body, or None for a verb without one. Missing arguments are omitted; None becomes null."""
        if self.method in {"GET", "DELETE"}:
            return None
        body: dict[str, Any] = {}
        for parameter in self.fields:
            if parameter.name in arguments:
                parameter.put(body, arguments[parameter.name])
        return body


class Removed(TypedDict):
    """Number of removed objects."""

    removed: Annotated[int, About("number of removed objects")]


PLACES: Mapping[str, type] = {"partition": int, "broker": int, "producer_id": int}
"""The types of names in paths that are not strings."""
PARTITION = "/v1/topics/{topic}/partitions/{partition}"
