"""What is known about users, from what they said themselves.

Facts come from a model where one is configured (`asking`), else from rules for English:
`statements` finds where a user states something, `patterns` says what, and `rules` makes
facts of it. `facts` keeps them: each cites the turns it was said in, and falls with them;
`chains` says which supersedes which, and `wording` how they are written.
"""
