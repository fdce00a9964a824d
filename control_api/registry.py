"""Verbs about the schema registry beside the brokers (`serve --schema-registry`): its address and its faults."""

from typing import Annotated, Literal, TypedDict

from control_api.fields import About
from control_api.verb import Removed, Verb


class RegistryFault(TypedDict, total=False):
    """A fault of the registry: the requests that it refuses or delays, and how often."""

    status: Annotated[
        int,
        About(
            "HTTP status or error code of the registry, such as 500 or 50002, to return instead of a result",
            least=400,
            most=59_999,  # five digits that begin with an HTTP status, up to 599
            such=50002,
        ),
    ]
    message: Annotated[str, About("message of that error", default="an injected fault")]
    delay_ms: Annotated[int, About("delay of the answer, by the cluster's clock", least=0, default=0)]
    path: Annotated[str, About("start of the path of a request, such as /subjects; by default all paths")]
    method: Annotated[Literal["GET", "POST", "PUT", "DELETE"], About("method of a request; all methods without it")]
    skip: Annotated[int, About("number of matching requests to let pass first", least=0, most=2**31 - 1, default=0)]
    times: Annotated[int, About("maximum number of requests to affect; 0: all", least=0, most=2**31 - 1, default=1)]


VERBS = (
    Verb("registry show", "GET", "/v1/registry", "registry.show()",
         "URL of the schema registry, numbers of subjects and versions", answer="registry.RegistryInfo", example={}),
    Verb("registry fail", "POST", "/v1/registry/faults", "registry.fail(...)",
         "refuse or delay matching requests to the schema registry", body=RegistryFault,
         answer="registry.RegistryFaultState", example={"status": 50002, "path": "/subjects"}),
    Verb("registry faults", "GET", "/v1/registry/faults", "registry.faults()", "all faults of the schema registry",
         answer="registry.RegistryFaults", items="faults",
         columns=("id", "hits", "method", "path", "status", "delay_ms", "skip", "times"), example={}),
    Verb("registry heal", "DELETE", "/v1/registry/faults", "registry.heal()",
         "remove all faults of the schema registry", answer=Removed, example={}),
)  # fmt: skip
