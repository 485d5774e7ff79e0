"""Runs, their events, and the words of questions and answers for the search."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_WORDS = (
    "CREATE VIRTUAL TABLE run_words USING fts5(question, answer, tokenize='unicode61 remove_diacritics 2')",
    "CREATE TRIGGER run_words_added AFTER INSERT ON runs BEGIN "
    "INSERT INTO run_words(rowid, question, answer) VALUES (new.number, new.question, new.answer); END",
    "CREATE TRIGGER run_words_changed AFTER UPDATE OF question, answer ON runs BEGIN "
    "UPDATE run_words SET question = new.question, answer = new.answer WHERE rowid = old.number; END",
    "CREATE TRIGGER run_words_removed AFTER DELETE ON runs BEGIN DELETE FROM run_words WHERE rowid = old.number; END",
)


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("conversation", sa.Text, nullable=False, server_default=""),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("protocol", sa.Text, nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False, server_default=""),
        sa.Column("lease_until", sa.Float, nullable=False, server_default="0"),
        sa.Column("wish", sa.Text, nullable=False, server_default=""),
        sa.Column("key_id", sa.Text, nullable=False, server_default=""),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("ended", sa.Float),
        sa.Column("seconds", sa.Float, nullable=False, server_default="0"),
        sa.Column("rounds", sa.Integer, nullable=False, server_default="0"),
        sa.Column("searches", sa.Integer, nullable=False, server_default="0"),
        sa.Column("passages", sa.Integer, nullable=False, server_default="0"),
        sa.Column("tokens", sa.Integer, nullable=False, server_default="0"),
        sa.Column("credits", sa.Float, nullable=False, server_default="0"),
        sa.Column("usd", sa.Float, nullable=False, server_default="0"),
        sa.Column("open_block", sa.Text, nullable=False, server_default="[]"),
        sa.Column("trace", sa.Text, nullable=False),
    )
    op.create_index("runs_by_time", "runs", ["created", "id"])
    op.create_index("runs_by_conversation", "runs", ["conversation"])
    op.create_index("runs_by_key", "runs", ["key_id", "created"])
    op.create_index("runs_by_owner", "runs", ["state", "owner"])
    op.create_table(
        "events",
        sa.Column("run", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("step", sa.Text, nullable=False),
        sa.Column("grown", sa.Text, nullable=False),
    )
    if op.get_context().dialect.name == "sqlite":
        for statement in _WORDS:
            op.execute(statement)
