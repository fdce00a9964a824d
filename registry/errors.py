"""The registry's errors: HTTP status, error code and message as Confluent's registry has them."""

INVALID_SCHEMA = 42201


class RegistryError(Exception):
    """An answer such as ``{"error_code": 40401, "message": "..."}``; the status is the code's first three digits."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code if self.code < 1000 else self.code // 100


class InvalidSchema(Exception):
    """A schema that its format does not allow; the message is the reason."""


def no_subject(subject: str) -> RegistryError:
    """There is no such subject, or none that is not deleted."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def no_version(version: int) -> RegistryError:
    """The subject has no such version."""
    return RegistryError(40402, f"Version {version} not found.")


def no_schema(schema_id: int | None = None) -> RegistryError:
    """There is no schema with that id, or that schema is not registered."""
    return RegistryError(40403, "Schema not found" if schema_id is None else f"Schema {schema_id} not found")


def subject_deleted(subject: str) -> RegistryError:
    """It was deleted softly before."""
    return RegistryError(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_deleted(subject: str) -> RegistryError:
    """A permanent deletion comes after a soft one."""
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_deleted(subject: str, version: str | int) -> RegistryError:
    """The version was deleted softly before."""
    text = f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    return RegistryError(40406, text)


def version_not_deleted(subject: str, version: str | int) -> RegistryError:
    """A permanent deletion of a version comes after a soft one."""
    text = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return RegistryError(40407, text)


def no_compatibility(subject: str) -> RegistryError:
    """The subject has no level of its own."""
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject: str) -> RegistryError:
    """The subject has no mode of its own."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, details: str) -> RegistryError:
    """The schema breaks the subject's compatibility level."""
    text = "Schema being registered is incompatible with an earlier schema for subject "
    return RegistryError(409, f'{text}"{subject}", details: {details}')


def invalid_schema(message: str) -> RegistryError:
    """The schema cannot be read, or its references are not there."""
    return RegistryError(INVALID_SCHEMA, message)


def invalid_version(version: str) -> RegistryError:
    """Neither a number nor latest."""
    text = f"The specified version '{version}' is not a valid version id. "
    return RegistryError(42202, text + 'Allowed values are between [1, 2^31-1] and the string "latest"')


def not_permitted(message: str) -> RegistryError:
    """The mode forbids it."""
    return RegistryError(42205, message)


def is_referenced(subject: str, version: int) -> RegistryError:
    """Other schemas refer to this one."""
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryError(42206, f"One or more references exist to the schema {key}.")


def store_failed(message: str) -> RegistryError:
    """The topic `_schemas` cannot be written."""
    return RegistryError(50001, message)
