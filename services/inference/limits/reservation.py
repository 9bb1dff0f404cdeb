"""What a request reserves of its caller's tokens and money before a model is called. Pure.

It reserves its input, estimated high, and the output that it may have at most: its `max_tokens`,
without one the model's limit, for each of its answers. Of the models of its plan the one that
reserves most counts, since nearly always one of them answers.
"""

from types import MappingProxyType
from typing import Final, Protocol

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.common.text.texts import quoted
from services.inference.allowances.needs import Reservation
from services.inference.limits.fees import Fees, fees_of
from services.inference.limits.input_tokens import most_input_tokens
from services.inference.plans.plan import Plan, Step
from services.inference.pricing.price import Counts, MostUsage
from services.inference.providers.base import Target

# The output of a model whose limit is not known: `max_output_tokens` of [[models]] sets it.
UNKNOWN_OUTPUT: Final = 32_768
# No provider bills more input tokens, unless the model's context window is known to be larger.
_LARGEST_CONTEXT: Final = 1 << 20
_BUDGET: Final = "the caller has a budget"
_NO_PIECES: Final[Counts] = MappingProxyType({})


class Prices(Protocol):
    """The prices of models; see `Costs`."""

    def highest_cost(
        self, usage: MostUsage, provider: str, model: str, upstream: str
    ) -> int | None:
        """Return the highest cost of a request in picodollars, or None if it is not known."""
        ...


class Demand:
    """What one request may use at most.

    Args:
        plan: its plan.
        request: the request, perhaps without its conversation.
        fees: its fees; None if no money is counted.
        generates: whether it has output, unlike embeddings.
        prices: the prices of models.
        is_native: whether a model's provider has the dialect of the request. Others are not sent
            the fields and tools that may have fees.
        translates_searches: whether such a provider may search with a tool of its own.
        pieces: the images or characters of its answer, by unit.
    """

    __slots__ = (
        *("_fees", "_generates", "_is_native", "_pieces", "_plan", "_prices", "_request"),
        "_translates_searches",
    )

    def __init__(
        self,
        plan: Plan,
        request: GenerateRequest,
        fees: Fees | None,
        prices: Prices,
        *,
        generates: bool = True,
        is_native: bool = True,
        translates_searches: bool = False,
        pieces: Counts = _NO_PIECES,
    ) -> None:
        self._plan = plan
        self._request = request
        self._is_native = is_native
        self._translates_searches = translates_searches
        self._fees = None if fees is None else self._billed(fees)
        self._prices = prices
        self._generates = generates
        self._pieces = pieces

    def reservation(self, input_tokens: int, output_tokens: int = 0) -> Reservation:
        """Return what the request reserves.

        Args:
            input_tokens: its input tokens.
            output_tokens: output tokens of earlier rounds.

        Raises:
            GatewayError: permission_denied, the cost of a model or of a field is not known.
        """
        if self._fees is not None and self._fees.unpriced is not None:
            raise _unknown(*self._fees.unpriced)
        tokens = cost = 0
        for step in self._plan.places():
            read, written_tokens, fees = self._most(step, input_tokens)
            read = min(read, max(step.target.context_window, _LARGEST_CONTEXT))
            written_tokens += output_tokens
            tokens = max(tokens, read + written_tokens)
            if fees is not None:
                cost = max(cost, self._cost(step, read, written_tokens, fees))
        return Reservation(1, tokens, cost)

    def _billed(self, fees: Fees) -> Fees:
        """Return the fees that a provider may bill."""
        if self._is_native:
            return fees
        searches = fees.translated_searches if self._translates_searches else 0
        return Fees(None, fees.inputs, fees.outputs, searches, fees.search_path)

    def _most(self, step: Step, input_tokens: int) -> tuple[int, int, Fees | None]:
        """Return the most input and output tokens of a step, and its fees."""
        own, fees, target = step.parameters, self._fees, step.target
        if own is None:
            return input_tokens, self._output(self._request, target), fees
        if fees is not None:
            fees = _joined(fees, self._billed(fees_of(own)), f"{step.path}.parameters.")
            if fees.unpriced is not None:
                raise _unknown(*fees.unpriced)
        replaced = own.messages or own.tools
        read = max(input_tokens, most_input_tokens(own)) if replaced else input_tokens
        has_own = own.HasField("max_tokens")
        return read, self._output(own if has_own else self._request, target), fees

    def _output(self, request: GenerateRequest, target: Target) -> int:
        if not self._generates:
            return 0
        limit = target.max_output_tokens
        max_tokens = request.max_tokens or limit or UNKNOWN_OUTPUT
        if limit:
            max_tokens = min(max_tokens, limit)
        return max_tokens * max(1, self._request.n)

    def _cost(self, step: Step, read: int, written: int, fees: Fees) -> int:
        target = step.target
        outputs, pieces = fees.outputs, self._pieces
        usage = MostUsage(read, written, fees.searches, fees.inputs, outputs, pieces)
        names = target.provider, target.name, target.upstream
        cost = self._prices.highest_cost(usage, *names)
        if cost is not None:
            return cost
        without = self._prices.highest_cost(usage._replace(searches=0), *names)
        if without is not None:
            raise _unknown(fees.search_path, f"the price of a search by {target.name} is not known")
        path = f"{step.path}.model" if step.path else "model"
        raise _unknown(
            path,
            f"the price of {quoted(target.name)} is not known for all that the request may use; "
            "use another model, or ask the operator to set `price` of the model or of its provider "
            "in the settings ({input = 0, output = 0} if it is free)",
        )


def _joined(fees: Fees, own: Fees, prefix: str) -> Fees:
    """Return the fees of a request with those of a step's parameters."""
    unpriced = None if own.unpriced is None else (prefix + own.unpriced[0], own.unpriced[1])
    return Fees(
        unpriced,
        fees.inputs | own.inputs,
        fees.outputs | own.outputs,
        fees.searches + own.searches,
        prefix + own.search_path if own.search_path else fees.search_path,
    )


def _unknown(path: str, why: str) -> GatewayError:
    """Return the error for a request whose highest cost is not known."""
    return GatewayError(
        errors_pb2.REASON_PERMISSION_DENIED,
        f"{path}: {_BUDGET}, and {why}",
        param=path,
        limit="spend.unknown_price",
    )
