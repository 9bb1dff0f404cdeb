"""Profiles: facts about users, from what they say themselves.

Facts are extracted by a model where one is configured (`extraction_prompt`), else by rules for
English: `statements` finds sentences in which a user states something, `patterns` and `rules` turn
them into facts. `fact_store` stores facts with the turns that they cite, `fact_versions` determines
which fact supersedes which, and `facts` normalizes them.
"""
