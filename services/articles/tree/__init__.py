"""The document tree as pure values.

In the order of dependence: `refusal` and `limits`; `values` (checks on single JSON values);
`nodes` (leaves, elements, their JSON form); `normalise`; `parsing` (what a caller sent, into
nodes); `sequence` and `index` (what makes an edit of a long document cheap); `document`;
`operations` (the edits); `requests` (request bodies into operations).
"""
