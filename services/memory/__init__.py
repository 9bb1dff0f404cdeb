"""The memory service: conversations that the server keeps between requests.

Packages, from the top: `turns` begins and commits turns, `jobs` summarises and archives them in the
background, `archive` indexes old turns, `profile` extracts facts about users, `locks` provides read
and write locks on memories, and `storage` keeps memories in the database, with the pure rules of
how messages and turns are stored.
"""
