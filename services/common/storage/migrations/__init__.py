"""The migrations of all tables, applied by `services.common.storage.migrations.runner`.

A new step is a module in `versions`, named after its number and its additions; `HEAD` is its
number. The first creates the tables of `first_release`. `sqlite.sql` contains the tables that
result from all steps (`snapshot`). Released steps are never changed. `record` reads and writes the
current step of a database.
"""

# The newest step. Known without Alembic, so that a process whose tables are up to date
# does not load it.
HEAD = "0023"

# The oldest step whose programs are compatible with the tables of `HEAD`: no later step removes
# anything that those programs use.
OLDEST = "0023"
