"""The document tree as pure values.

Modules in order of dependency: `errors`; `values` and `schema` (checks of JSON); `nodes` (leaves,
elements, their JSON form); `normalise`; `references` and `style` (the parts of a document besides
its nodes); `parsing` (callers' JSON into nodes); `sequence` and `index` (persistent structures that
keep edits of long documents cheap); `document`; `operations` (applied to documents, logged);
`edits` (`Edit` messages into operations).
"""
