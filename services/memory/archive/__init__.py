"""The archive: an index of older turns, searched by words and by vectors.

The indexed unit is the turn: the text of user and assistant, with its date. These modules are pure:
`words` and `dates` extract terms, `postings` packs their occurrences, `bm25f` scores turns by terms
and `binary_quantization` by the vectors of an embedding model, if one is configured (`top_k`
selects for both), `score_fusion` fuses both scores, and `snippets` cuts the results to a budget.
`index` and `lookup` write and read the index in the database; `signature_cache` caches the
quantized vectors. Ranking is done here and not by the database, so that SQLite and PostgreSQL
return the same order.

The archive has postings of its own because the full-text indexes of both engines are slower here,
with the same terms and the same pass of BM25F over their best 256 turns (`python -m
tests.bench.memory --engines`): a search takes 3 to 7 times as long with SQLite FTS5, 9 times with
PostgreSQL's `tsvector`, and finds 5 % less among the first ten results. Those indexes rank over the
memories of all users, so the turns of one memory that contain a term have to be counted for each
term of a question. They are a third of the size and cheaper to write, but the tokens that the BM25F
pass reads take up more than that.

Not used, since they brought no gain on long conversations: other values of k1 and b, BM25+, words
without stemming and with stop words, character n-grams, bigrams, lemmas, RM3, MMR, sparse vectors
of a small model, a bonus for newer turns or for turns of one session.
"""
