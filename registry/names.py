"""Names of subjects in contexts: `:.team:orders-value` is the subject orders-value in the context `.team`."""

DEFAULT_CONTEXT = "."
ALL_CONTEXTS = ":*:"
_MARK = ":."


def context_of(subject: str | None) -> str:
    """Return the context of a qualified subject; `.`, the default one, for any other name."""
    if subject is None or not subject.startswith(_MARK):
        return DEFAULT_CONTEXT
    context, colon, _ = subject[1:].partition(":")
    return context if colon or context else DEFAULT_CONTEXT


def prefix_of(context: str) -> str:
    """Return the prefix of a context's subjects; "" for the default context."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def unqualified(subject: str) -> str:
    """Return the name without its context."""
    if not subject.startswith(_MARK):
        return subject
    return subject[1:].partition(":")[2]


def normal(subject: str) -> str:
    """Return the canonical name: subjects of the default context have no prefix."""
    return unqualified(subject) if subject.startswith(":.:") else subject


def qualified(subject: str, context: str) -> str:
    """Put a subject into a context, unless it has one itself."""
    return subject if subject.startswith(_MARK) else f"{prefix_of(context)}{subject}"


def full_name(subject: str, context: str) -> str:
    """Return the stored name of a subject, in the context unless it has one itself."""
    return normal(qualified(subject, context))


def matches(wanted: str | None, subject: str) -> bool:
    """Whether a subject matches: by its name, or by the prefix of its context; None matches all."""
    context = context_of(subject)
    return wanted is None or wanted == subject or (wanted == prefix_of(context) and context_of(wanted) == context)
