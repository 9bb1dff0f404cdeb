"""The memory service: conversations that the server remembers.

Packages, from the top: `turns` opens and commits turns, `jobs` summarises and archives them in the
background, `archive` indexes old turns, `profile` extracts facts about users, `locks` orders the
calls on one memory, and `storage` keeps memories in the database, with the pure rules of how
messages and turns are stored.
"""
