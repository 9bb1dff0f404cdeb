"""Files of vector stores in OpenAI's format, and batches of them: bodies and objects.

Source: OpenAI's API reference, "Vector store files" and "Vector store file batches".
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, Tag, TypeAdapter

from facade.dialects.paths import FieldNames
from facade.dialects.validation import read
from gateway.memory.v1 import vector_stores_pb2 as pb
from services.common.errors import invalid

MAX_SIZE: Final = "chunking_strategy.static.max_chunk_size_tokens"
OVERLAP: Final = "chunking_strategy.static.chunk_overlap_tokens"
# Callers' names of the service's fields: of a file, and of a batch with ids or with files.
FILE_NAMES: Final = FieldNames(
    {
        "files[].file_id": "file_id",
        "files[].attributes": "attributes",
        "files[].chunking.max_chunk_tokens": MAX_SIZE,
        "files[].chunking.overlap_tokens": OVERLAP,
        "files": "file_id",
        "after_id": "after",
        "before_id": "before",
        "page_size": "limit",
    }
)
BATCH_NAMES: Final = FieldNames(
    {
        "files[].file_id": "file_ids[]",
        "files[].attributes": "attributes",
        "files[].chunking.max_chunk_tokens": MAX_SIZE,
        "files[].chunking.overlap_tokens": OVERLAP,
        "files": "file_ids",
    }
)
BATCH_OF_FILES_NAMES: Final = FieldNames(
    {
        "files[].chunking.max_chunk_tokens": f"files[].{MAX_SIZE}",
        "files[].chunking.overlap_tokens": f"files[].{OVERLAP}",
    }
)
MAX_FILES: Final = 2_000
# Larger integers become floating-point numbers, as in JavaScript.
_MAX_INTEGER: Final = 1 << 53
# The size of chunks that "auto" stands for.
_AUTO: Final = (800, 400)
_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)
_SECOND: Final = 1000
_STATES: Final[Mapping[pb.VectorStoreFileState.ValueType, str]] = {
    pb.VECTOR_STORE_FILE_STATE_IN_PROGRESS: "in_progress",
    pb.VECTOR_STORE_FILE_STATE_COMPLETED: "completed",
    pb.VECTOR_STORE_FILE_STATE_FAILED: "failed",
    pb.VECTOR_STORE_FILE_STATE_CANCELLED: "cancelled",
}
_BY_NAME: Final = {name: state for state, name in _STATES.items()}

FileId = Annotated[str, Field(min_length=1, max_length=64)]
Attributes = Annotated[
    dict[
        Annotated[str, Field(min_length=1, max_length=64)],
        Annotated[str, Field(max_length=512), Tag("#string")]
        | Annotated[bool, Tag("#boolean")]
        | Annotated[int, Field(ge=-_MAX_INTEGER, le=_MAX_INTEGER), Tag("#integer")]
        | Annotated[float, Tag("#number")],
    ],
    Field(max_length=16),
]


class StaticChunking(BaseModel):
    """The size of chunks."""

    model_config = _OPEN

    max_chunk_size_tokens: Annotated[int, Field(ge=100, le=4_096)] = Field(
        description="Maximum number of tokens of a chunk, as the gateway estimates them."
    )
    chunk_overlap_tokens: Annotated[int, Field(ge=0, le=2_048)] = Field(
        description="Tokens that two chunks share; at most half of the maximum."
    )


class ChunkingStrategy(BaseModel):
    """How text is cut into chunks."""

    model_config = _OPEN

    type: Literal["auto", "static"] = Field(
        description="auto: chunks of 800 tokens, of which 400 overlap."
    )
    static: StaticChunking | None = Field(None, description="With `static`: the size of chunks.")


class VectorStoreFileBody(BaseModel):
    """The body of a request that adds a file to a vector store."""

    model_config = _OPEN

    file_id: FileId = Field(description="A file, of any purpose.")
    attributes: Attributes | None = Field(
        None, description="Up to 16 strings, numbers and booleans, for filters."
    )
    chunking_strategy: ChunkingStrategy | None = Field(None, description="How its text is cut.")


class VectorStoreFileChange(BaseModel):
    """The body of a change of a file of a vector store."""

    model_config = _OPEN

    attributes: Attributes | None = Field(description="They replace those that the file has.")


class FileBatchBody(BaseModel):
    """The body of a request that adds a batch of files; one of `file_ids` and `files`."""

    model_config = _OPEN

    file_ids: Annotated[list[FileId], Field(max_length=MAX_FILES)] | None = Field(
        None, description="The files, all with the same attributes."
    )
    files: Annotated[list[VectorStoreFileBody], Field(max_length=MAX_FILES)] | None = Field(
        None, description="The files, each with attributes of its own."
    )
    attributes: Attributes | None = Field(None, description="The attributes of `file_ids`.")
    chunking_strategy: ChunkingStrategy | None = Field(
        None, description="How the text of `file_ids` is cut."
    )


_BODY: TypeAdapter[VectorStoreFileBody] = TypeAdapter(VectorStoreFileBody)
_CHANGE: TypeAdapter[VectorStoreFileChange] = TypeAdapter(VectorStoreFileChange)
_BATCH: TypeAdapter[FileBatchBody] = TypeAdapter(FileBatchBody)


def sizes_of(strategy: ChunkingStrategy | None, path: str = "chunking_strategy") -> tuple[int, int]:
    """Return the tokens of a chunk, and those that two chunks share.

    Args:
        strategy: the strategy; None is `auto`.
        path: its path.

    Raises:
        GatewayError: invalid, a static strategy without its sizes.
    """
    if strategy is None or strategy.type == "auto":
        return _AUTO
    if strategy.static is None:
        raise invalid(f"{path}.static", f"{path}.static: is required")
    return strategy.static.max_chunk_size_tokens, strategy.static.chunk_overlap_tokens


def new_file(
    file_id: str, attributes: Mapping[str, str | float | bool] | None, sizes: tuple[int, int]
) -> pb.NewVectorStoreFile:
    """Return a file to add; `sizes` are those of its chunks."""
    size, overlap = sizes
    return pb.NewVectorStoreFile(
        file_id=file_id,
        attributes=orjson.dumps(attributes) if attributes else b"",
        chunking=pb.ChunkingStrategy(max_chunk_tokens=size, overlap_tokens=overlap),
    )


def parse_file(store_id: str, body: bytes) -> pb.AddVectorStoreFilesRequest:
    """Parse the body of a request that adds a file.

    Raises:
        GatewayError: invalid, naming the field.
    """
    wire = read(_BODY, body)
    added = new_file(wire.file_id, wire.attributes, sizes_of(wire.chunking_strategy))
    return pb.AddVectorStoreFilesRequest(vector_store_id=store_id, files=[added])


def parse_batch(store_id: str, body: bytes) -> tuple[pb.AddVectorStoreFilesRequest, FieldNames]:
    """Parse the body of a request that adds a batch; also return the names of its fields.

    Raises:
        GatewayError: invalid, naming the field.
    """
    wire = read(_BATCH, body)
    if bool(wire.file_ids) == bool(wire.files):
        raise invalid("file_ids", "file_ids: exactly one of file_ids and files is required")
    request = pb.AddVectorStoreFilesRequest(vector_store_id=store_id, is_batch=True)
    sizes = sizes_of(wire.chunking_strategy)
    for file_id in dict.fromkeys(wire.file_ids or ()):
        request.files.append(new_file(file_id, wire.attributes, sizes))
    for index, one in enumerate(wire.files or ()):
        sizes = sizes_of(one.chunking_strategy, f"files[{index}].chunking_strategy")
        request.files.append(new_file(one.file_id, one.attributes, sizes))
    return request, BATCH_OF_FILES_NAMES if wire.files else BATCH_NAMES


def parse_file_change(store_id: str, file_id: str, body: bytes) -> pb.UpdateVectorStoreFileRequest:
    """Parse the body of a change of a file.

    Raises:
        GatewayError: invalid, naming the field.
    """
    wire = read(_CHANGE, body)
    return pb.UpdateVectorStoreFileRequest(
        vector_store_id=store_id,
        file_id=file_id,
        attributes=orjson.dumps(wire.attributes) if wire.attributes else b"",
    )


def parse_state(query: Mapping[str, str]) -> pb.VectorStoreFileState.ValueType:
    """Parse `filter` of a list of files: the state of the files; any when absent.

    Raises:
        GatewayError: invalid.
    """
    name = query.get("filter")
    if name is None:
        return pb.VECTOR_STORE_FILE_STATE_UNSPECIFIED
    if name not in _BY_NAME:
        raise invalid("filter", f"filter: must be one of {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def file_object(file: pb.VectorStoreFile) -> dict[str, Any]:
    """Return a file of a vector store as an object of JSON."""
    error = {"code": file.error_code, "message": file.error_message}
    return {
        "id": file.file_id,
        "object": "vector_store.file",
        "created_at": file.created_at_ms // _SECOND,
        "usage_bytes": file.usage_bytes,
        "vector_store_id": file.vector_store_id,
        "status": _STATES[file.state],
        "last_error": error if file.error_code else None,
        "chunking_strategy": {
            "type": "static",
            "static": {
                "max_chunk_size_tokens": file.chunking.max_chunk_tokens,
                "chunk_overlap_tokens": file.chunking.overlap_tokens,
            },
        },
        "attributes": attributes_of(file.attributes),
    }


def batch_object(batch: pb.VectorStoreFileBatch) -> dict[str, Any]:
    """Return a batch of files as an object of JSON."""
    number = batch.file_counts
    if batch.is_cancelled:
        status = "cancelled"
    elif number.in_progress:
        status = "in_progress"
    else:
        status = "failed" if number.total and number.failed == number.total else "completed"
    return {
        "id": batch.id,
        "object": "vector_store.files_batch",
        "created_at": batch.created_at_ms // _SECOND,
        "vector_store_id": batch.vector_store_id,
        "status": status,
        "file_counts": counts(number),
    }


def render_content(file_id: str, answer: pb.ReadVectorStoreFileResponse, next_page: str) -> bytes:
    """Return the JSON of a part of the text of a file."""
    return orjson.dumps(
        {
            "object": "vector_store.file_content.page",
            "file_id": file_id,
            "data": [{"type": "text", "text": text} for text in answer.texts],
            "has_more": answer.has_more,
            "next_page": next_page or None,
        }
    )


def counts(number: pb.FileCounts) -> dict[str, int]:
    """Return the numbers of files as an object of JSON."""
    names = ("in_progress", "completed", "failed", "cancelled", "total")
    return {name: getattr(number, name) for name in names}


def attributes_of(json: bytes) -> Any:
    """Return the attributes of a file for JSON."""
    return orjson.Fragment(json) if json else {}
