"""What is remembered for a while of deleted files and libraries."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "deleted",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("place", sa.Float, nullable=False),
        sa.Column("with_runs", sa.Integer, nullable=False, server_default="0"),
        sa.Column("deleted", sa.Float, nullable=False),
    )
