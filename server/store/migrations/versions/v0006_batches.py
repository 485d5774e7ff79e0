"""Which libraries a report searched; attributes of files in libraries, and files that were put there together."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("reports", sa.Column("libraries", sa.Text, nullable=False, server_default=""))
    op.execute(  # the runs of a report's sections all searched the same
        "UPDATE reports SET libraries = coalesce("
        "(SELECT max(runs.libraries) FROM runs WHERE runs.conversation = reports.id), '')"
    )
    op.add_column("library_files", sa.Column("attributes", sa.Text, nullable=False, server_default="{}"))
    op.create_table(
        "library_batches",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("library", sa.Text, sa.ForeignKey("libraries.id", ondelete="CASCADE"), nullable=False),
        sa.Column("cancelled", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_index("library_batches_by_library", "library_batches", ["library"])
    op.create_table(
        "library_batch_files",
        sa.Column("batch", sa.Text, sa.ForeignKey("library_batches.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("file", sa.Text, primary_key=True),
    )
