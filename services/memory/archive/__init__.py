"""The archive: an index of older turns, searched by words and by vectors.

The unit is the turn: the text of user and assistant, with its date. `words` and `dates` extract
terms, `postings` packs where these occur, `bm25f` scores turns by them, `binary_quantization` by
the vectors of an embedding model where there is one (`top_k` selects for both), `score_fusion`
fuses both scores, and `snippets` cuts the results to a budget. These are pure. `index` and
`lookup` write and read the index in the database; `signature_cache` keeps what every search by
vectors would read again. Ranking is done here and not by the database, so that both engines give
the same order.

The postings are the archive's own because the engines' full-text indexes are slower here, with the
same terms and the same pass of BM25F over their best 256 turns (`python -m tests.bench.memory
--engines`): a search takes 3 to 7 times as long with SQLite FTS5, 9 with PostgreSQL's `tsvector`,
and finds 5 % less among the first ten. They rank over the memories of all users, so that how many
turns of one memory have a term is counted for each term of a question. Their indexes are a third of
the size and cheaper to write; the tokens that the pass reads take more than that.

Tried on long conversations without a gain, and so not here: other values of k1 and b, BM25+, stems
and stop words left as they are, n-grams of characters, bigrams, lemmas, RM3, MMR, sparse vectors
of a small model, a bonus for newer turns or for turns of one session.
"""
