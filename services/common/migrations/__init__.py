"""The one history of the tables of all services, applied by `services.common.database.migrate`.

A new step is a module in `versions`, named after its number and what it adds, and `HEAD`
is its number. `sqlite.sql` is what all of them together make (`snapshot`). Steps that have been
released are never changed.
"""

# The newest step. Known without Alembic, so that a process whose tables are up to date
# does not load it.
HEAD = "0013"
