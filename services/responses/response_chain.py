"""Reads the chain of responses that a response continues, by a recursive query, and items by id."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, and_, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.clock import Clock
from services.common.storage.database import reading, reading_once
from services.responses.conversations.rows import ReadItems, read_until
from services.responses.conversations.tables import origins
from services.responses.packing import unpack_items
from services.responses.records import (
    RUNNING,
    ResponseLimits,
    conversation_too_large,
    conversation_too_long,
    item_not_found,
    not_found,
    still_running,
)
from services.responses.tables import contents, output_items, responses

_EXTRA_TTL_MS = 86_400_000
# Ids in one SQL statement; databases accept some thousands.
_IDS_AT_ONCE = 500


class ResponseChainReader:
    """Reads the conversations that new responses continue.

    Args:
        engine: the database.
        clock: the clock.
        limits: the bounds of a conversation.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, limits: ResponseLimits) -> None:
        self._engine = engine
        self._clock = clock
        self._limits = limits

    async def read(
        self,
        owner_id: str,
        response_id: str,
        *,
        with_last_output: bool = True,
        max_bytes: int | None = None,
    ) -> ReadItems:
        """Return the items up to a response; see `read_chain`.

        If the first response was generated from a stored conversation, the items of that
        conversation come first. Items of more than `max_bytes` bytes are not loaded.

        Raises:
            GatewayError: as `read_chain`; not_found, that conversation is gone.
        """
        async with reading_once(self._engine) as connection:
            chain = await read_chain(
                connection,
                owner_id,
                response_id,
                self._clock.now_ms(),
                self._limits,
                with_last_output=with_last_output,
                max_bytes=max_bytes,
            )
        own_bytes = chain.first.items_bytes
        if chain.first.conversation_id:
            bytes_left = None if max_bytes is None else max_bytes - own_bytes
            before = await self._read_origin(owner_id, chain.first, bytes_left)
        else:
            before = ReadItems(())
        size = own_bytes + before.omitted_bytes
        if max_bytes is not None and size > max_bytes:
            return ReadItems((), size)
        own_items = await unpack_items(chain.packed)
        chain.packed.clear()  # it may be as large
        return ReadItems([*before.items, *own_items.items] if before.items else own_items.items)

    async def _read_origin(
        self, owner_id: str, first: Row[Any], max_bytes: int | None
    ) -> ReadItems:
        """Return the items of the stored conversation that a chain's first response is based on.

        Raises:
            GatewayError: not_found; too_large.
        """
        async with reading_once(self._engine) as connection:
            before = await read_until(
                connection,
                owner_id,
                first.conversation_id,
                first.last_position,
                self._clock.now_ms(),
                max_bytes,
            )
        if first.items_bytes + sum(len(item.json) for item in before.items) > (
            self._limits.max_conversation_bytes
        ):
            raise conversation_too_large(self._limits.max_conversation_bytes)
        return before

    async def find_items(
        self, owner_id: str, ids: Sequence[str], max_bytes: int | None = None
    ) -> ReadItems:
        """Return items of the outputs of an owner's responses, in the order of their ids.

        Outputs of more than `max_bytes` bytes are not loaded.

        Raises:
            GatewayError: not_found, with the position of an id that no item has; too_large.
        """
        async with reading(self._engine) as connection:
            now_ms = self._clock.now_ms()
            packed = await read_outputs(connection, owner_id, ids, now_ms, self._limits, max_bytes)
        if isinstance(packed, int):
            return ReadItems((), packed)
        by_id = {item.id: item for item in (await unpack_items(packed)).items}
        for place, item_id in enumerate(ids):
            if item_id not in by_id:
                raise item_not_found(item_id, place)
        return ReadItems([by_id[item_id] for item_id in ids])


class Chain(NamedTuple):
    """A response with all previous ones.

    Attributes:
        packed: the serialized items of all of them, the oldest first.
        first: the row of the oldest response.
    """

    packed: list[bytes]
    first: Row[Any]


async def read_chain(
    connection: AsyncConnection,
    owner_id: str,
    response_id: str,
    now_ms: int,
    limits: ResponseLimits,
    *,
    with_last_output: bool,
    max_bytes: int | None = None,
) -> Chain:
    """Return the chain of responses up to one of them.

    Args:
        connection: a connection for one read statement.
        owner_id: the user.
        response_id: id of the last response.
        now_ms: Unix milliseconds.
        limits: the bounds of the conversation.
        with_last_output: whether to include the output of the last response, which then has to
            have ended.
        max_bytes: the items of a larger chain are not loaded.

    Raises:
        GatewayError: not_found, there is no such response, or a previous one is gone; conflict, it
            has not ended; too_large.
    """
    query = _select_conversation(owner_id, response_id, now_ms, limits, max_bytes)
    rows = (await connection.execute(query)).all()
    _check(rows, response_id, limits, must_have_ended=with_last_output)
    if max_bytes is not None and rows[0].items_bytes > max_bytes:
        return Chain([], rows[0])
    packed = [part for row in rows for part in (row.input, row.output)]
    return Chain(packed if with_last_output else packed[:-1], rows[0])


async def read_outputs(
    connection: AsyncConnection,
    owner_id: str,
    item_ids: Sequence[str],
    now_ms: int,
    limits: ResponseLimits,
    max_bytes: int | None = None,
) -> list[bytes] | int:
    """Return the serialized outputs of the responses that contain some of the given items.

    If they have more than `max_bytes` bytes, only their size is returned.

    Args:
        connection: a connection for several read statements.
        owner_id: the user.
        item_ids: ids of the items.
        now_ms: Unix milliseconds.
        limits: the bounds; the outputs together are limited as a conversation is.
        max_bytes: see above.

    Raises:
        GatewayError: too_large.
    """
    sizes: dict[str, int] = {}
    size = func.length(contents.c.output).label("size")
    for start in range(0, len(item_ids), _IDS_AT_ONCE):
        query = (
            select(output_items.c.id, size)
            .join(contents, contents.c.id == output_items.c.id)
            .join(responses, responses.c.id == output_items.c.id)
            .where(
                output_items.c.owner_id == owner_id,
                output_items.c.item_id.in_(item_ids[start : start + _IDS_AT_ONCE]),
                responses.c.expires_at_ms > now_ms,
            )
        )
        sizes.update({row.id: row.size for row in await connection.execute(query)})
    if sum(sizes.values()) > limits.max_conversation_bytes:
        raise conversation_too_large(limits.max_conversation_bytes)
    if max_bytes is not None and sum(sizes.values()) > max_bytes:
        return sum(sizes.values())
    ids = list(sizes)
    packed: list[bytes] = []
    for start in range(0, len(ids), _IDS_AT_ONCE):
        is_in_batch = contents.c.id.in_(ids[start : start + _IDS_AT_ONCE])
        packed += await connection.scalars(select(contents.c.output).where(is_in_batch))
    return packed


async def extend_expiry(
    connection: AsyncConnection,
    owner_id: str,
    previous_id: str,
    row: Mapping[str, Any],
    limits: ResponseLimits,
) -> None:
    """Extend the expiry of all responses that a new one continues, at least to its own expiry.

    They get a day more than that, so that not every new response updates its whole conversation.

    Args:
        connection: a connection in a transaction.
        owner_id: the user.
        previous_id: id of the response that is continued.
        row: the row of the new response.
        limits: the bounds of the conversation.
    """
    is_previous = and_(responses.c.owner_id == owner_id, responses.c.response_id == previous_id)
    ends = await connection.scalar(select(responses.c.expires_at_ms).where(is_previous))
    if ends is None or ends >= row["expires_at_ms"]:
        return
    chain = _chain(owner_id, previous_id, row["created_at_ms"], limits)
    expires_at_ms = row["expires_at_ms"] + _EXTRA_TTL_MS
    # The same order everywhere, so that two transactions never deadlock.
    ordered = (
        select(responses.c.id)
        .where(responses.c.id.in_(select(chain.c.id)))
        .order_by(responses.c.id)
        .with_for_update(key_share=True)
    )
    await connection.execute(
        update(responses)
        .where(responses.c.id.in_(ordered), responses.c.expires_at_ms < expires_at_ms)
        .values(expires_at_ms=expires_at_ms)
    )


def _chain(owner_id: str, response_id: str, now_ms: int, limits: ResponseLimits) -> Any:
    """Return the recursive query for a response and all previous ones, within the bounds.

    If there are more, the query finds one response beyond the bounds.
    """
    first = responses.alias("first")
    size = (func.length(contents.c.input) + func.length(contents.c.output)).label("items_bytes")
    chain = (
        select(
            first.c.id,
            first.c.response_id,
            first.c.previous_id,
            first.c.state,
            literal(1).label("place"),
            size,
        )
        .join(contents, contents.c.id == first.c.id)
        .where(
            first.c.owner_id == owner_id,
            first.c.response_id == response_id,
            first.c.expires_at_ms > now_ms,
        )
        .cte("chain", recursive=True)
    )
    previous = responses.alias("previous")
    return chain.union_all(
        select(
            previous.c.id,
            previous.c.response_id,
            previous.c.previous_id,
            previous.c.state,
            chain.c.place + 1,
            chain.c.items_bytes + size,
        )
        .join(chain, chain.c.previous_id == previous.c.response_id)
        .join(contents, contents.c.id == previous.c.id)
        .where(
            previous.c.owner_id == owner_id,
            previous.c.expires_at_ms > now_ms,
            chain.c.previous_id != "",
            chain.c.place <= limits.max_conversation,
            chain.c.items_bytes <= limits.max_conversation_bytes,
        )
    )


def _select_conversation(
    owner_id: str,
    response_id: str,
    now_ms: int,
    limits: ResponseLimits,
    max_bytes: int | None,
) -> Select[Any]:
    chain = _chain(owner_id, response_id, now_ms, limits)
    max_items_bytes = limits.max_conversation_bytes
    if max_bytes is not None:
        max_items_bytes = min(max_items_bytes, max_bytes)
    fits = and_(contents.c.id == chain.c.id, chain.c.items_bytes <= max_items_bytes)
    return (
        select(
            chain,
            contents.c.input,
            contents.c.output,
            origins.c.conversation_id,
            origins.c.last_position,
        )
        .outerjoin_from(chain, contents, fits)
        .outerjoin(origins, origins.c.id == chain.c.id)
        .order_by(chain.c.place.desc())
    )


def _check(
    rows: Sequence[Row[Any]], response_id: str, limits: ResponseLimits, *, must_have_ended: bool
) -> None:
    if not rows:
        raise not_found(response_id)
    if must_have_ended and rows[-1].state in RUNNING:
        raise still_running(response_id)
    oldest = rows[0]
    if oldest.place > limits.max_conversation:
        raise conversation_too_long(limits.max_conversation)
    if oldest.items_bytes > limits.max_conversation_bytes:
        raise conversation_too_large(limits.max_conversation_bytes)
    if oldest.previous_id:
        raise not_found(oldest.previous_id)
