"""Documents made of blocks: edited by small operations, read back as Markdown.

What the modules of this package know, and what they don't:

- `tree` holds the document as an immutable value and every edit as a small value of its
  own: applied it gives a new document, its inverse and the ids that were made, or a
  `EditError` and nothing has happened. Both edits and documents have a JSON form.
- `style` knows which style properties fit which block, merges patches (RFC 7396) and
  computes what finally applies to a block.
- `references` knows the shape of a bibliographic entry and numbers the citations.
- `markdown` renders a block or a whole document.

All of these are pure: no clock, no storage, no network, no randomness. New ids come from
a function that is passed in. They cannot tell who may edit a document, nor whether a file
that an image names exists and belongs to the caller.

Around them stands what is not pure:

- `tables` are the rows; `log` keeps each document's operations and snapshots, `cache` holds
  open documents in memory, and `committer` is the one way in which edits become durable.
- `repository` has the documents as lists show them and who may do what with them, `groups`
  the groups and grants, `sessions` who has which document open.
- `files` asks the file store whether an image's file is the caller's.
- `servicer` is gRPC, with `codec`, `reads` and `errors` for its forms; `sweeper` clears away
  what is over; `assembly` builds it all from settings.

An edit is in the log before it is answered. Any number of processes may serve one document:
the log's key decides who was first, and the other applies its edit again.
"""
