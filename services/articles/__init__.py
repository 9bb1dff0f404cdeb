"""Documents made of blocks: edited by small operations, read back as Markdown.

What the modules of this package know, and what they don't:

- `tree` holds the document as an immutable value and every edit as a small value of its
  own: applied it gives a new document, its inverse and the ids that were made, or a
  `Refusal` and nothing has happened. Both edits and documents have a JSON form.
- `style` knows which style properties fit which block, merges patches (RFC 7396) and
  computes what finally applies to a block.
- `references` knows the shape of a bibliographic entry and numbers the citations.
- `markdown` renders a block or a whole document.

All of these are pure: no clock, no storage, no network, no randomness. New ids come from
a function that is passed in. They cannot tell who may edit a document, nor whether a file
that an image names exists and belongs to the caller: `file_ids` lists those to be asked for.
"""
