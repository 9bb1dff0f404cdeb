"""The type of a streamed answer, and one that is observed on its way."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from services.inference.stream.filters import Batch

# Takes a batch; returns whether the next ones should wait.
Take = Callable[[Batch], bool]
# A streamed answer, a batch for each read. A function that is sent into the iterator, by `asend`,
# may be called with the batches that follow, as they are received, which takes less than an
# iteration for each. The iterator goes on where the function returned True, then with an empty
# batch, and for whatever it does not pass to the function.
Batches = AsyncGenerator[Batch, Take | None]


def do_nothing() -> None:
    """Do nothing at the end of an answer."""


async def observed(
    batches: Batches,
    observe: Callable[[Batch], object],
    on_complete: Callable[[], object] = do_nothing,
) -> Batches:
    """Yield the batches of an answer.

    Args:
        batches: the answer.
        observe: called with each batch before that is passed on, with no empty one.
        on_complete: called when the answer has come to its end.
    """

    def observe_and_pass(batch: Batch) -> bool:
        observe(batch)
        assert take is not None, "it is passed on with `take`"
        return take(batch)

    take: Take | None = None
    async with aclosing(batches):
        try:
            batch = await anext(batches)
            while True:
                if batch:
                    observe(batch)
                take = yield batch
                batch = await batches.asend(None if take is None else observe_and_pass)
        except StopAsyncIteration:
            on_complete()
