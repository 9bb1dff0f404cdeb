"""Finds archived turns by what they say: `Archive` is what others use.

A turn is the unit: what user and assistant said in it, with its date. `words` and `dates`
cut it into terms, `postings` ranks turns by BM25, `signatures` by the vectors of an
embedding model where there is one; `ranking` brings both into one order, and `snippets`
cuts what was found to a budget. These are pure. `index` and `lookup` keep and read it
all in the database; the ranking is our own, so both engines give the same order.

A session is a run of turns with no pause of more than an hour between one and the next.
"""
