"""Settings of vector stores."""

from typing import Annotated

from pydantic import Field

from services.common.settings.base import Section, setting


class VectorStores(Section):
    """Vector stores: the text of files, which models and callers search."""

    enabled: bool = setting(
        True,
        "whether the workers of this machine index files; files can be added in any case",
    )
    max_per_user: Annotated[int, Field(ge=1, le=1_000_000)] = setting(
        1_000, "vector stores of a user", seen="403 `storage_quota_exceeded`"
    )
    max_files: Annotated[int, Field(ge=1, le=1_000_000)] = setting(
        10_000, "files of a vector store", seen="403 `storage_quota_exceeded`"
    )
    max_chunks: Annotated[int, Field(ge=1, le=1_000_000)] = setting(
        100_000,
        "chunks of a vector store",
        details="about 40 million tokens of text, at the usual size",
        seen="the file is `failed`, with `invalid_file`",
    )
    max_bytes_per_user: Annotated[int, Field(ge=1024)] = setting(
        1 << 30,
        "bytes of the text and vectors of a user's vector stores",
        seen="403 `storage_quota_exceeded`; a file that is being indexed is `failed`",
    )
    max_file_bytes: Annotated[int, Field(ge=1024)] = setting(
        64 << 20,
        "bytes of a file that is indexed",
        details="its text may have 8 MiB",
        seen="the file is `failed`, with `invalid_file`",
    )
    max_pages: Annotated[int, Field(ge=1)] = setting(
        2_000,
        "pages of a document that are read",
        seen="the file is `failed`, with `invalid_file`",
    )
    max_parallel_files: Annotated[int, Field(ge=1, le=100)] = setting(
        2, "files that a worker indexes at a time", seen="indexing takes longer"
    )
