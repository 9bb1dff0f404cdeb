"""Rows of vector stores as messages, their limits and errors. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Row

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.vector_stores_pb2 import (
    VECTOR_STORE_FILE_STATE_CANCELLED,
    VECTOR_STORE_FILE_STATE_COMPLETED,
    VECTOR_STORE_FILE_STATE_FAILED,
    VECTOR_STORE_FILE_STATE_IN_PROGRESS,
    ChunkingStrategy,
    FileCounts,
    VectorStore,
    VectorStoreFile,
    VectorStoreFileBatch,
    VectorStoreFileState,
)
from services.common.errors import GatewayError, invalid

DAY_MS: Final = 86_400_000
# Numbers between the chunks of two files, so that they are no neighbours in the index.
GAP: Final = 3
# Chunks that a vector store can have had in all: a search takes eight bytes for each.
MAX_NUMBER: Final = 4_000_000
MAX_NAME: Final = 256
MAX_DESCRIPTION: Final = 512
MAX_METADATA: Final = 16 << 10
MAX_EXPIRY_DAYS: Final = 365
DEFAULT_CHUNKING: Final = ChunkingStrategy(max_chunk_tokens=800, overlap_tokens=400)
MIN_CHUNK_TOKENS, MAX_CHUNK_TOKENS = 100, 4_096

STORE_PREFIX: Final = "vs_"
FILE_PREFIX: Final = "vsf_"
BATCH_PREFIX: Final = "vsfb_"

_COUNTS: Final[Mapping[VectorStoreFileState.ValueType, str]] = {
    VECTOR_STORE_FILE_STATE_IN_PROGRESS: "in_progress",
    VECTOR_STORE_FILE_STATE_COMPLETED: "completed",
    VECTOR_STORE_FILE_STATE_FAILED: "failed",
    VECTOR_STORE_FILE_STATE_CANCELLED: "cancelled",
}


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of the files of a vector store or of a batch.

    Attributes:
        counts: their numbers, by state.
        usage_bytes: the bytes of their index.
    """

    counts: FileCounts
    usage_bytes: int = 0


def totals_of(rows: Mapping[VectorStoreFileState.ValueType, tuple[int, int]]) -> Totals:
    """Return the sums of numbers of files and of their bytes, by state."""
    counts = FileCounts(total=sum(count for count, _ in rows.values()))
    for state, (count, _) in rows.items():
        setattr(counts, _COUNTS[state], count)
    return Totals(counts, sum(size for _, size in rows.values()))


def has_expired(row: Row[Any], now_ms: int) -> bool:
    """Return whether a vector store has expired."""
    return bool(0 < row.expires_at_ms <= now_ms)


def expiry_ms(days: int | None, active_at_ms: int) -> int:
    """Return when a vector store expires without activity; 0 for never."""
    return active_at_ms + days * DAY_MS if days else 0


def store_of(row: Row[Any], totals: Totals, now_ms: int) -> VectorStore:
    """Return a vector store."""
    store = VectorStore(
        id=row.id,
        name=row.name,
        description=row.description,
        metadata=row.metadata,
        file_counts=totals.counts,
        usage_bytes=totals.usage_bytes,
        created_at_ms=row.created_at_ms,
        last_active_at_ms=row.last_active_at_ms,
        expires_at_ms=row.expires_at_ms,
        has_expired=has_expired(row, now_ms),
    )
    if row.expires_after_days:
        store.expires_after_days = row.expires_after_days
    return store


def file_of(row: Row[Any]) -> VectorStoreFile:
    """Return a file of a vector store."""
    return VectorStoreFile(
        file_id=row.file_id,
        vector_store_id=row.store_id,
        filename=row.filename,
        state=row.state,
        error_code=row.error_code,
        error_message=row.error_message,
        attributes=row.attributes,
        chunking=ChunkingStrategy(
            max_chunk_tokens=row.max_chunk_tokens, overlap_tokens=row.overlap_tokens
        ),
        usage_bytes=row.usage_bytes,
        created_at_ms=row.created_at_ms,
    )


def batch_of(row: Row[Any], totals: Totals) -> VectorStoreFileBatch:
    """Return a batch of files."""
    return VectorStoreFileBatch(
        id=row.id,
        vector_store_id=row.store_id,
        is_cancelled=row.is_cancelled,
        file_counts=totals.counts,
        created_at_ms=row.created_at_ms,
    )


def check_chunking(chunking: ChunkingStrategy, path: str) -> None:
    """Check a chunking strategy.

    Raises:
        GatewayError: invalid, with the path of the field.
    """
    if not MIN_CHUNK_TOKENS <= chunking.max_chunk_tokens <= MAX_CHUNK_TOKENS:
        name = f"{path}.max_chunk_tokens"
        raise invalid(name, f"{name}: must be {MIN_CHUNK_TOKENS} to {MAX_CHUNK_TOKENS}")
    if 2 * chunking.overlap_tokens > chunking.max_chunk_tokens:
        name = f"{path}.overlap_tokens"
        raise invalid(name, f"{name}: must be at most half of the maximum size of a chunk")


def store_not_found(param: str) -> GatewayError:
    """Return the error for a vector store that the user does not have."""
    return _not_found(param, "no such vector store")


def file_not_found() -> GatewayError:
    """Return the error for a file that is not in a vector store."""
    return _not_found("file_id", "the vector store has no such file")


def batch_not_found() -> GatewayError:
    """Return the error for a batch of files that does not exist."""
    return _not_found("batch_id", "the vector store has no such batch of files")


def _not_found(param: str, problem: str) -> GatewayError:
    return GatewayError(errors_pb2.REASON_NOT_FOUND, f"{param}: {problem}", param=param)


def expired(param: str) -> GatewayError:
    """Return the error for a vector store that has expired."""
    return invalid(param, f"{param}: the vector store has expired; create a new one")


def quota_exceeded(message: str, limit: str) -> GatewayError:
    """Return the error for a limit of the user's vector stores."""
    return GatewayError(errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED, message, limit=limit)
