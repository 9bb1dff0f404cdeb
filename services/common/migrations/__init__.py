"""The one history of the tables of all services, applied by `services.common.database.migrate`.

A new step is a module in `versions`, named after its number and what it adds, and `HEAD`
is its number. `sqlite.sql` is what all of them together make (`snapshot`). Steps that have been
released are never changed. `record` reads and writes the step that a database is at.
"""

# The newest step. Known without Alembic, so that a process whose tables are up to date
# does not load it.
HEAD = "0015"

# The oldest step whose programs work with the tables as `HEAD` has them: no later step takes
# anything away that those programs use.
OLDEST = "0009"
