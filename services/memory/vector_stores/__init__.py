"""Vector stores: the text of files, searched by words and by vectors.

A vector store has an archive of its own (`services.memory.archive`), in which each chunk of a
file is a turn. The chunks of a file have numbers in sequence, so that a file, and whatever a filter
selects, is a range of numbers; a gap separates two files. `file_text` reads the text of a file,
`chunking` cuts it, and `indexing` stores the chunks, as jobs of the queue that memory uses.

pgvector is not used: both databases are to return the same order, words have the larger share of a
score, and a filter selects the ranges of which the nearest are searched. An exact search by it
takes ten times as long; `docs/internals/capacity.md` has the measurement, also of its index.
"""
