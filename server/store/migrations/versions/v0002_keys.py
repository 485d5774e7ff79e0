"""Keys of clients and what they used."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False, unique=True),
        sa.Column("limits", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("revoked", sa.Float),
    )
    op.create_table(
        "usage",
        sa.Column("key_id", sa.Text, primary_key=True),
        sa.Column("day", sa.Text, primary_key=True),
        sa.Column("tokens", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("searches", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("credits", sa.Float, nullable=False, server_default="0"),
    )
