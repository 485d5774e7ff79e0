"""What an API keeps beside the trace of a run, to send it again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("runs", sa.Column("aside", sa.Text, nullable=False, server_default=""))
