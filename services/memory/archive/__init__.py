"""The archive: an index of older turns, searched by words and by vectors.

The unit is the turn: the text of user and assistant, with its date. `words` and `dates` extract
terms, `postings` ranks turns by BM25, `binary_quantization` by the vectors of an embedding model
where there is one, `ranking` fuses both rankings, and `snippets` cuts the results to a budget.
These are pure. `index` and `lookup` write and read the index in the database. Ranking is done here
and not by the database, so that both engines give the same order.

A session is a run of turns with no pause of more than an hour between two of them.
"""
