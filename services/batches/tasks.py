"""The values of the queue: claimed tasks and their requests, and what is looked for and stored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.conversation.v1.conversation_pb2 import Dialect
from services.batches.records import RequestResult, TaskKind

# Workers that claim a task and die, after which no more of it is run.
MAX_CLAIMS = 8


@dataclass(frozen=True, slots=True)
class ClaimedRequest:
    """A request of a claimed task.

    Attributes:
        number: its number.
        custom_id: the id that the caller gave it.
        size: bytes of its body.
        body: its body; None for a large one, which is read when the request is run.
    """

    number: int
    custom_id: str
    size: int
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Task:
    """A claimed task.

    Attributes:
        id: its id.
        kind: what it does.
        batch_id: its batch.
        user_id: the user of the batch.
        key_id: the key that the batch was created with.
        dialect: the dialect of its requests.
        endpoint: the endpoint of its requests.
        headers: headers that are sent with its requests.
        input_file_id: the input file of the batch, or "".
        output_file_id: the file of results that has been written, or "".
        error_file_id: the file of errors that has been written, or "".
        output_ttl_s: lifetime of these files; None for the usual one.
        created_at_ms: when the batch was created.
        expires_at_ms: when its time is over.
        is_cancelled: whether it has been cancelled.
        has_ended: whether it has ended, and only its rows are to be deleted.
        has_unbegun: whether requests have results that say so.
        total: the number of its requests.
        first: the number of the first request of this task.
        size: how many there may be from that on.
        provider_batch_id: the provider batch of its requests, or "".
        claims: how many workers have claimed it, with this one; the others have died.
        begun_alone: how often the first of its requests has been run alone.
        requests: those that have no result yet, of a task that runs them.
    """

    id: str
    kind: TaskKind
    batch_id: str
    user_id: str
    key_id: str
    dialect: Dialect.ValueType
    endpoint: str
    headers: Mapping[str, str]
    input_file_id: str
    output_file_id: str
    error_file_id: str
    output_ttl_s: int | None
    created_at_ms: int
    expires_at_ms: int
    is_cancelled: bool
    has_ended: bool
    has_unbegun: bool
    total: int
    first: int
    size: int
    provider_batch_id: str
    claims: int
    begun_alone: int
    requests: Sequence[ClaimedRequest] = field(default=(), repr=False)

    @property
    def is_given_up(self) -> bool:
        """Whether so many of its workers have died that what they died of is not tried again."""
        return self.claims > MAX_CLAIMS


@dataclass(frozen=True, slots=True)
class QueueState:
    """The number of tasks that nobody holds, and when the oldest batch of them was created."""

    free: int
    oldest_ms: int | None


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks a process could run now.

    Attributes:
        kinds: their kinds.
        except_users: users whose tasks are left to others.
        at_most: how many are claimed together.
    """

    kinds: Collection[TaskKind]
    except_users: Collection[str] = ()
    at_most: int = 1


@dataclass(frozen=True, slots=True)
class TaskResults:
    """Results of a task, to be stored.

    Attributes:
        task: the task.
        results: the results.
        is_done: whether the task is done, and removed.
        is_last: whether this process has no more of them.
    """

    task: Task
    results: Sequence[RequestResult] = field(repr=False)
    is_done: bool = False
    is_last: bool = False
