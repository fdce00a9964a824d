"""The registry's errors: HTTP status, error code and message as Confluent's registry has them."""

INVALID_SCHEMA = 42201


class RegistryError(Exception):
    """Error response such as ``{"error_code": 40401, "message": "..."}``; the code's first 3 digits are the status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code if self.code < 1000 else self.code // 100


class InvalidSchema(Exception):
    """Schema that is invalid in its format; the message is the reason."""


def no_subject(subject: str) -> RegistryError:
    """Subject that does not exist, or is deleted."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def no_version(version: int) -> RegistryError:
    """Version that the subject does not have."""
    return RegistryError(40402, f"Version {version} not found.")


def no_schema(schema_id: int | None = None) -> RegistryError:
    """Schema id that does not exist, or schema that is not registered."""
    return RegistryError(40403, "Schema not found" if schema_id is None else f"Schema {schema_id} not found")


def subject_deleted(subject: str) -> RegistryError:
    """Subject that was soft-deleted before."""
    return RegistryError(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_deleted(subject: str) -> RegistryError:
    """Permanent deletion of a subject that was not soft-deleted before."""
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_deleted(subject: str, version: str | int) -> RegistryError:
    """Version that was soft-deleted before."""
    text = f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    return RegistryError(40406, text)


def version_not_deleted(subject: str, version: str | int) -> RegistryError:
    """Permanent deletion of a version that was not soft-deleted before."""
    text = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return RegistryError(40407, text)


def no_compatibility(subject: str) -> RegistryError:
    """Subject without its own compatibility level."""
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject: str) -> RegistryError:
    """Subject without its own mode."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, details: str) -> RegistryError:
    """Schema that is incompatible at the subject's level."""
    text = "Schema being registered is incompatible with an earlier schema for subject "
    return RegistryError(409, f'{text}"{subject}", details: {details}')


def invalid_schema(message: str) -> RegistryError:
    """Schema that cannot be read, or whose references do not exist."""
    return RegistryError(INVALID_SCHEMA, message)


def invalid_version(version: str) -> RegistryError:
    """Version that is neither a number nor `latest`."""
    text = f"The specified version '{version}' is not a valid version id. "
    return RegistryError(42202, text + 'Allowed values are between [1, 2^31-1] and the string "latest"')


def not_permitted(message: str) -> RegistryError:
    """Operation that the mode forbids."""
    return RegistryError(42205, message)


def is_referenced(subject: str, version: int) -> RegistryError:
    """Schema to which other schemas refer."""
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryError(42206, f"One or more references exist to the schema {key}.")


def store_failed(message: str) -> RegistryError:
    """Failed write to the topic `_schemas`."""
    return RegistryError(50001, message)
