"""Names of subjects in contexts: `:.team:orders-value` is the subject orders-value of the context `.team`."""

DEFAULT_CONTEXT = "."
ALL_CONTEXTS = ":*:"
_MARK = ":."


def context_of(subject: str | None) -> str:
    """The context of a qualified subject; `.`, the default one, for any other name."""
    if subject is None or not subject.startswith(_MARK):
        return DEFAULT_CONTEXT
    context, colon, _ = subject[1:].partition(":")
    return context if colon or context else DEFAULT_CONTEXT


def prefix_of(context: str) -> str:
    """What the subjects of a context begin with: nothing in the default context."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def unqualified(subject: str) -> str:
    """The name without its context."""
    if not subject.startswith(_MARK):
        return subject
    return subject[1:].partition(":")[2]


def normal(subject: str) -> str:
    """One spelling for each subject: those of the default context have no prefix."""
    return unqualified(subject) if subject.startswith(":.:") else subject


def qualified(subject: str, context: str) -> str:
    """A subject within a context, unless it names one itself."""
    return subject if subject.startswith(_MARK) else f"{prefix_of(context)}{subject}"


def full_name(subject: str, context: str) -> str:
    """A subject as it is kept: within a context, unless it names one itself."""
    return normal(qualified(subject, context))


def matches(wanted: str | None, subject: str) -> bool:
    """Whether a subject is meant: by its name, or by the prefix of its context; None means all."""
    context = context_of(subject)
    return wanted is None or wanted == subject or (wanted == prefix_of(context) and context_of(wanted) == context)
