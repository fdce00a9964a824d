"""The tables' columns, as an Arrow schema and as Spark's DDL."""

import pytest

from pipeline import schemas


def test_the_records_begin_as_sparks_own_source_has_them() -> None:
    """Names, order and types of `format("kafka")` with `includeHeaders`."""
    assert schemas.ddl(schemas.segments(headers=True)) == (
        "`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint, `timestamp` timestamp, "
        "`timestampType` int, `headers` array<struct<`key`: string, `value`: binary>>"
    )


def test_columns_are_added_by_name() -> None:
    """Each once, in the order in which they were asked for; `*` is all that are left."""
    assert schemas.segments(extra=["sequence", "aborted", "sequence"]).names[7:] == ["sequence", "aborted"]
    assert set(schemas.segments(extra=["segment", "*"]).names[7:]) == set(schemas.EXTRA.names)


def test_a_strange_column_is_refused() -> None:
    """An unknown column is refused with the names of those that exist."""
    with pytest.raises(ValueError, match="no column 'sequense'; there are: headers, timestamp_ms"):
        schemas.segments(extra=["sequense"])


@pytest.mark.parametrize("schema", [schemas.BATCHES, *schemas.STATE.values()])
def test_every_table_has_a_schema_of_spark(schema: object) -> None:
    """Each column has its name and type in the DDL."""
    assert schemas.ddl(schema).count("`") >= 2 * len(schema.names)  # type: ignore[attr-defined]
