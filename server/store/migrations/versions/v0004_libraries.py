"""Libraries of uploaded files, and which of them a run searched."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("runs", sa.Column("libraries", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "files",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key_id", sa.Text, nullable=False, server_default=""),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False, server_default=""),
        sa.Column("url", sa.Text, nullable=False, server_default=""),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_index("files_by_key", "files", ["key_id", "created"])
    op.create_table(
        "libraries",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key_id", sa.Text, nullable=False, server_default=""),
        sa.Column("name", sa.Text, nullable=False, server_default=""),
        sa.Column("metadata", sa.Text, nullable=False, server_default="{}"),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_index("libraries_by_key", "libraries", ["key_id", "created"])
    op.create_table(
        "library_files",
        sa.Column("library", sa.Text, sa.ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("file", sa.Text, primary_key=True),
        sa.Column("shard", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False, server_default=""),
        sa.Column("passages", sa.Integer, nullable=False, server_default="0"),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("added", sa.Float, nullable=False),
    )
    op.create_index("library_files_by_file", "library_files", ["file"])
