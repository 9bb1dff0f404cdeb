"""Files: one store for every provider-style call.

What it can do: keep a file that streams in, describe it, list a caller's files page by
page, read it or a range of it, delete it, forget it when it expires, and account for the
storage of each owner (the team where there is one, else the user).

What it cannot do: change a file, resume an upload, read what a file holds (Inference
does that), or clean up parts of an S3 upload whose process was killed: those are hidden
from every listing, so give the bucket a lifecycle rule that ends incomplete uploads.

Where what is: `names`, `mime`, `ranges` (pure rules), `blobs` (bytes: a folder or S3),
`repository` (the tables), `uploads` (how a file comes in), `store` (everything else that
is done to one), `sweeper` (expired files, bytes without a row), `servicer` (gRPC),
`assembly` (builds it all from settings).

Bytes are written, and safe on disk, before their row commits; a row goes before its
bytes. So a crash can only leave bytes without a row, and the sweeper finds those.
"""
