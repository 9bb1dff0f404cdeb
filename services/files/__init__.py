"""The file service: one store for the files of all dialects.

It stores uploaded files, describes them, lists a caller's files by page, reads a file or a
range of it, deletes files on request and when they expire, and accounts for the storage of
each owner (the team if there is one, else the user).

It does not change files or interpret the content of files (Inference does
that). Nor does it remove the parts of an S3 upload whose process was killed: they are hidden
from every listing, so give the bucket a lifecycle rule that aborts incomplete uploads.

Modules: `names` and `ranges` (pure rules), `blobs` (the bytes, in a folder or S3),
`repository` (files and usage), `content` (receives bytes), `creation` (files in one call),
`upload_repository` and `uploads` (files in parts, over several calls), `store` (reads and deletes
files), `sweeper` (deletes expired files and uploads, and bytes without a row), `servicer` (gRPC),
`assembly` (builds the service from settings).

Bytes are written, and durable, before their row is committed; a row is deleted before its
bytes. So a crash can only leave bytes without a row, and the sweeper finds those.
"""
