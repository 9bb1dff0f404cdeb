from tests.databases import empty_storage as empty_storage
from tests.databases import engine as engine
from tests.databases import migrated_database as migrated_database
from tests.databases import migrated_file as migrated_file
from tests.databases import postgresql as postgresql
from tests.databases import storage as storage
