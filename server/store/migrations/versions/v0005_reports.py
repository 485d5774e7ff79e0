"""Reports, and what was said of them to lists."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "reports",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False, server_default=""),
        sa.Column("lease_until", sa.Float, nullable=False, server_default="0"),
        sa.Column("command", sa.Text, nullable=False, server_default=""),
        sa.Column("key_id", sa.Text, nullable=False, server_default=""),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("ended", sa.Float),
        sa.Column("figures", sa.Text, nullable=False, server_default="{}"),
        sa.Column("report", sa.Text, nullable=False),
    )
    op.create_index("reports_by_time", "reports", ["created", "id"])
    op.create_index("reports_by_key", "reports", ["key_id", "created"])
