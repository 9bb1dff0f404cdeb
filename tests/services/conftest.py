from tests.databases import engine as engine
from tests.databases import postgresql as postgresql
from tests.databases import storage as storage
