"""The type of a streamed answer."""

from collections.abc import AsyncGenerator, Callable

from services.inference.stream.filters import Batch

# Takes a batch; returns whether the next ones should wait.
Take = Callable[[Batch], bool]
# A streamed answer, a batch for each read. A function that is sent into the iterator, by `asend`,
# may be called with the batches that follow, as they are received, which takes less than an
# iteration for each. The iterator goes on where the function returned True, then with an empty
# batch, and for whatever it does not pass to the function.
Batches = AsyncGenerator[Batch, Take | None]
