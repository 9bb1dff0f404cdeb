"""Alembic environment: migrations run on the connection, and in the transaction, they are given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
