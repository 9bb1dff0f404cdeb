"""Documents as pandoc's tree, and back; no I/O.

`from_document` makes the tree that every export begins with, `to_blocks` makes blocks of the tree
of what is imported. `syntax` has the nodes of the tree, `inlines` and `to_leaves` translate texts,
`citations` references and citations, `formatted` reads what pandoc made of them. `html` writes the
tree where pandoc is not installed, `formats` lists the formats.

https://hackage.haskell.org/package/pandoc-types/docs/Text-Pandoc-Definition.html
"""
