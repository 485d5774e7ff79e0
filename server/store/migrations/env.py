"""What alembic runs: the migrations, in the transaction of the connection that the store opened."""

from alembic import context

from server.store.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
