"""Article service: documents made of blocks, edited by small operations, read as Markdown.

Pure modules, without clock, storage, network or randomness; new ids come from a function that
is passed in:

- `tree` holds the document as an immutable value and every edit as an operation: applied, it
  returns a new document, its inverse and the ids it made, or raises `EditError`.
- `style` checks styles, merges patches (RFC 7396) and computes the style of a block.
- `references` checks bibliographic entries and numbers the citations.
- `markdown` renders a block or a whole document.

Modules with I/O:

- `servicer` is the gRPC service, with `codec`, `responses` and `errors`; `assembly` builds it
  from settings.
- `committer` applies edits and makes them durable; `loader` finds the documents of sessions in
  `cache` or builds them from `operation_log`, and `snapshots` keeps the log short to replay.
- `repository` holds lists of documents and access rights, `groups` groups and grants,
  `sessions` open documents, `usage` quotas; `tables` their rows.
- `files` asks the file store whether an image's file belongs to the caller.
- `sweeper` and `retention` delete expired sessions, deleted documents and old operations.

How an edit travels: `servicer` decodes the `Edit` message (`tree.edits`) into an operation and
checks the files it names; `committer` applies it to the newest document, charges the owner and
appends operation and inverse to the log. The edit is answered after the commit. Any number of
processes may serve one document: the key of the log decides which came first, and the other
applies its edits again.
"""
