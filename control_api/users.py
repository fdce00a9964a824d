"""Verbs about SCRAM users: names, passwords and mechanisms."""

from typing import Annotated, Literal, Required, TypedDict

from control_api.fields import About
from control_api.verb import Verb

Mechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]


class NewCredential(TypedDict, total=False):
    """A user's password for one mechanism."""

    password: Required[Annotated[str, About("the password; answers and the journal never show it", least=1)]]
    mechanism: Annotated[Mechanism, About("the SCRAM mechanism of the password", default="SCRAM-SHA-256")]
    # As AlterUserScramCredentials (core G.11).
    iterations: Annotated[int, About("iterations of the hash", least=4096, most=16384, default=4096)]


class CredentialQuery(TypedDict, total=False):
    """Selection of a user's credentials."""

    mechanism: Annotated[Mechanism, About("only this mechanism; by default all")]


VERBS = (
    Verb("users list", "GET", "/v1/users", "users.list()", "SCRAM users and their mechanisms", answer="users.Users",
         items="users", columns=("name", "mechanisms"), example={}),
    Verb("users set", "POST", "/v1/users/{user}", "users[user].set(password)",
         "set the SCRAM password of a user, who need not exist", body=NewCredential,
         answer="users.User", example={"user": "alice", "password": "alice-secret", "mechanism": "SCRAM-SHA-512"}),
    Verb("users delete", "DELETE", "/v1/users/{user}", "users[user].delete()",
         "delete a SCRAM user, or one of its passwords", query=CredentialQuery, answer="users.User",
         example={"user": "alice"}),
)  # fmt: skip
