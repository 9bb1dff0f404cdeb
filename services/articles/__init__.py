"""Article service: documents made of blocks, edited by small operations, read as Markdown.

Pure modules, without clock, storage, network or randomness; new ids come from a function that
is passed in:

- `tree` represents the document as an immutable value and every edit as an operation: applied to
  a document, an operation returns the new document, its inverse and the new ids, or raises
  `EditError`.
- `tree.style` checks styles, merges patches (RFC 7396) and computes the style of a block.
- `tree.references` checks bibliographic entries and numbers the citations.
- `markdown` renders a block or a whole document.
- `changes` compares two states of a document; `outline` lists headings and finds texts.
- `tree.inline_markdown` parses the Markdown that callers send in edits of text.

Modules with I/O:

- `servicer` is the gRPC service, with `codec`, `responses` and `errors`; `assembly` builds it
  from settings.
- `committer` applies edits and makes them durable; `loader` finds the documents of sessions in
  `cache` or builds them from `operation_log`, and `snapshots` limits the operations to replay.
- `history` lists, reverses and compares edits; `reversible` is the rule of what a user can undo.
- `repository` stores the list of documents and access rights, `groups` groups and grants,
  `sessions` open documents, `usage` sizes and quotas; `tables` defines the tables.
- `files` checks with the file store that an image's file belongs to the caller, and reads files
  for all readers of a document; `images` finds and reads the pictures of a document.
- `sweeper` and `retention` delete expired sessions, deleted documents and old operations.

The path of an edit: `servicer` decodes the `Edit` message (`tree.edits`) into an operation and
checks the files that it names; `committer` applies it to the newest document, charges the owner
and appends operation and inverse to the log. The edit is answered after the commit. Any number of
processes may serve one document: the primary key of the log decides which of them was first, and
the others apply their edits again.
"""
