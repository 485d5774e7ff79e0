"""The tables as they are now. How an older database becomes one like this is in the migrations."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    literal_column,
)
from sqlalchemy.sql.elements import ColumnElement

METADATA: Final = MetaData()

RUNS: Final = Table(
    "runs",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("conversation", Text, nullable=False, server_default=""),
    Column("question", Text, nullable=False),
    Column("answer", Text),
    Column("origin", Text, nullable=False),  # api: it outlives its client; v1: it was kept when it ended
    Column("model", Text, nullable=False),
    Column("protocol", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("state", Text, nullable=False),  # running, or the reason for which it stopped
    Column("owner", Text, nullable=False, server_default=""),
    Column("lease_until", Float, nullable=False, server_default="0"),
    Column("wish", Text, nullable=False, server_default=""),  # cancel or answer_now, for the owner to read
    Column("key_id", Text, nullable=False, server_default=""),
    Column("created", Float, nullable=False),
    Column("ended", Float),
    Column("seconds", Float, nullable=False, server_default="0"),
    Column("rounds", Integer, nullable=False, server_default="0"),
    Column("searches", Integer, nullable=False, server_default="0"),
    Column("passages", Integer, nullable=False, server_default="0"),
    Column("tokens", Integer, nullable=False, server_default="0"),
    Column("credits", Float, nullable=False, server_default="0"),
    Column("usd", Float, nullable=False, server_default="0"),
    Column("open_block", Text, nullable=False, server_default="[]"),  # what is being written, for other replicas
    Column("trace", Text, nullable=False),
    Column("aside", Text, nullable=False, server_default=""),  # the run's metadata, in its API's own form
    Column("libraries", Text, nullable=False, server_default=""),  # ids of those it searched, with spaces between
    Index("runs_by_time", "created", "id"),
    Index("runs_by_conversation", "conversation"),
    Index("runs_by_key", "key_id", "created"),
    Index("runs_by_owner", "state", "owner"),
)
"""Times are seconds since 1970; `trace` and `open_block` are JSON."""

EVENTS: Final = Table(
    "events",
    METADATA,
    Column("run", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("step", Text, nullable=False),
    Column("grown", Text, nullable=False),
)
"""The closed steps of runs that outlive their clients, from 1, as they happened; `grown` is what the trace gained."""

KEYS: Final = Table(
    "keys",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),
    Column("limits", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)

REPORTS: Final = Table(
    "reports",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("question", Text, nullable=False),
    Column("state", Text, nullable=False),  # running, or how it ended
    Column("owner", Text, nullable=False, server_default=""),
    Column("lease_until", Float, nullable=False, server_default="0"),
    Column("command", Text, nullable=False, server_default=""),  # cancel or answer_now, for the owner to read
    Column("key_id", Text, nullable=False, server_default=""),
    Column("created", Float, nullable=False),
    Column("ended", Float),
    Column("figures", Text, nullable=False, server_default="{}"),  # what lists show
    Column("report", Text, nullable=False),
    Column("libraries", Text, nullable=False, server_default=""),  # as those of a run
    Index("reports_by_time", "created", "id"),
    Index("reports_by_key", "key_id", "created"),
)
"""`report` and `figures` are JSON. The runs of a report's sections are among `runs`, with its id as conversation."""

USAGE: Final = Table(
    "usage",
    METADATA,
    Column("key_id", Text, primary_key=True),
    Column("day", Text, primary_key=True),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("searches", BigInteger, nullable=False, server_default="0"),
    Column("credits", Float, nullable=False, server_default="0"),
)

FILES: Final = Table(
    "files",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("key_id", Text, nullable=False, server_default=""),
    Column("name", Text, nullable=False),
    Column("purpose", Text, nullable=False, server_default=""),
    Column("url", Text, nullable=False, server_default=""),
    Column("bytes", BigInteger, nullable=False),
    Column("created", Float, nullable=False),
    Index("files_by_key", "key_id", "created"),
)
"""Uploaded files; their bytes are in the folder of the libraries."""

LIBRARIES: Final = Table(
    "libraries",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("key_id", Text, nullable=False, server_default=""),
    Column("name", Text, nullable=False, server_default=""),
    Column("metadata", Text, nullable=False, server_default="{}"),
    Column("created", Float, nullable=False),
    Index("libraries_by_key", "key_id", "created"),
)

MEMBERS: Final = Table(
    "library_files",
    METADATA,
    Column("library", Text, ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
    Column("file", Text, primary_key=True),
    Column("shard", Integer, nullable=False),
    Column("state", Text, nullable=False),  # waiting, indexed, failed, cancelled; removed: until its shard is rebuilt
    Column("why", Text, nullable=False, server_default=""),
    Column("passages", Integer, nullable=False, server_default="0"),
    Column("bytes", BigInteger, nullable=False),
    Column("added", Float, nullable=False),
    Column("attributes", Text, nullable=False, server_default="{}"),  # JSON: what searches may filter by
    Index("library_files_by_file", "file"),
)
"""The files of each library, and in which of its shards each one is indexed."""

BATCHES: Final = Table(
    "library_batches",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("library", Text, ForeignKey("libraries.id", ondelete="CASCADE"), nullable=False),
    Column("cancelled", Integer, nullable=False, server_default="0"),
    Column("created", Float, nullable=False),
    Index("library_batches_by_library", "library"),
)
"""Files that were put into a library together."""

BATCH_FILES: Final = Table(
    "library_batch_files",
    METADATA,
    Column("batch", Text, ForeignKey("library_batches.id", ondelete="CASCADE"), primary_key=True),
    Column("file", Text, primary_key=True),
)

DELETED: Final = Table(
    "deleted",
    METADATA,
    Column("id", Text, primary_key=True),  # of a file or a library; LIBRARY/FILE of a file that was in one
    Column("place", Float, nullable=False),  # what lists were ordered by
    Column("with_runs", Integer, nullable=False, server_default="0"),  # a library's: what searched it is not kept
    Column("deleted", Float, nullable=False),
)
"""What was deleted within the last days: lists go on behind it, and runs that end later know of it."""

_NOW: Final = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())::float8",
}


def now(dialect: str) -> ColumnElement[Any]:
    """Seconds since 1970 by the database's clock, which all replicas share."""
    return literal_column(_NOW[dialect], Float)
