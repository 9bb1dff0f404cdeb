"""The stages of a request in the engine: checked, then prepared."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import unsupported
from services.common.process.byte_budget import Charge
from services.inference.adaptation.helpers import Generate
from services.inference.adaptation.session import Admit, MediaAdaptation
from services.inference.balancing.balancer import Balancer
from services.inference.files import place_files
from services.inference.learned.refusals import Refusals
from services.inference.media import MediaRef, find_media, overriding_media
from services.inference.memory.conversation import Conversation
from services.inference.memory.split import check_steps, uses_memory
from services.inference.memory.turn_client import RequestTurn, place_remembered_files
from services.inference.offload import is_large, offload
from services.inference.plans.plan import Plan, Plans
from services.inference.providers.base import Provider
from services.inference.request import thinking, validation
from services.inference.routes import Routes
from services.inference.run.attempt_factory import RequestAttempts
from services.inference.run.step_media import StepMedia
from services.inference.stored_files import Files, StoredFiles
from services.inference.tools.file_search import check_vector_stores
from services.inference.tools.history import KINDS as HISTORY_KINDS
from services.inference.tools.offer import NOTHING, may_run_tools
from services.inference.tools.rounds import Rounds
from services.inference.tools.running import WebTools
from services.inference.usage.metering import NO_METER, Meter, Metering
from services.inference.usage.request_usage import current_usage


class CheckedRequest(NamedTuple):
    """The plan and properties of a validated request.

    Attributes:
        plan: the fallback plan.
        providers: the providers, by name.
        media: the media of the request, if it uses no memory.
        has_thinking: whether the conversation may contain thinking.
        is_remembered: whether the request uses memory.
        routes: the models, and the providers that serve them, when the request was checked.
        offers_tools: whether a model may call the gateway's own tools.
        has_tool_calls: whether the conversation may contain calls of the gateway's own tools.
    """

    plan: Plan
    providers: Mapping[str, Provider]
    media: Sequence[MediaRef]
    has_thinking: bool
    is_remembered: bool
    routes: Routes
    offers_tools: bool
    has_tool_calls: bool


class PreparedRequest(NamedTuple):
    """A request with its files loaded, ready for the attempts of its plan.

    Attributes:
        plan: the fallback plan.
        providers: the providers, by name.
        attempts: makes the attempts.
        tools: makes the requests of rounds, and runs tool calls; None if no tools of the gateway
            are offered.
        meter: records the usage of the request.
    """

    plan: Plan
    providers: Mapping[str, Provider]
    attempts: RequestAttempts
    tools: tuple[Rounds, WebTools] | None
    meter: Meter


def check_request(
    request: GenerateRequest,
    routes: Routes,
    plans: Plans,
    balancer: Balancer,
    open_summaries: Callable[[], None],
    *,
    whole: bool,
) -> CheckedRequest:
    """Validate a request and make its plan; does no I/O.

    Args:
        request: the request; modified if its answer cannot be passed through.
        routes: the models, and the providers that serve them.
        plans: makes the plans of these models.
        balancer: chooses among the deployments of a model.
        open_summaries: opens the sealed summaries in the request.
        whole: whether the answer is returned as a whole.

    Raises:
        GatewayError: the request or its chain breaks a rule, or a model does not exist.
    """
    kinds = validation.check(request)
    if "opaque" in kinds:
        open_summaries()
    plan = plans.plan_for(request)
    if plan.is_balanced:
        plan = balancer.expand_deployments(plan, request, whole=whole)
    providers = routes.providers_of(request.dialect)
    has_tool_calls = not HISTORY_KINDS.isdisjoint(kinds)
    offers_tools = (
        bool(request.tools)
        or request.use_built_in_tools
        or request.HasField("web_search")
        or request.HasField("fallback_config")
    ) and _offers_tools(request, plan, providers, routes.web, has_tool_calls=has_tool_calls)
    is_remembered = uses_memory(request)
    media: Sequence[MediaRef] = ()
    if is_remembered:
        check_steps(request, plan)
        # The answer is parsed here, to be committed to memory.
        request.takes_passthrough = False
    elif "media" in kinds:
        media = find_media(request)
    has_thinking = not thinking.KINDS.isdisjoint(kinds)
    return CheckedRequest(
        plan, providers, media, has_thinking, is_remembered, routes, offers_tools, has_tool_calls
    )


def _offers_tools(
    request: GenerateRequest,
    plan: Plan,
    providers: Mapping[str, Provider],
    web: WebTools | None,
    *,
    has_tool_calls: bool,
) -> bool:
    """Return whether a model of the plan may call the gateway's own tools."""
    available = NOTHING if web is None else web.available
    targets = ((providers[step.target.adapter].dialect, step.target) for step in plan.steps)
    if not may_run_tools(request, targets, available, has_called=has_tool_calls):
        return False
    if request.use_built_in_tools and not available.has_web:
        raise unsupported(
            "use_built_in_tools", "use_built_in_tools: this gateway has no built-in tools"
        )
    # The rounds of the answer are joined here.
    request.takes_passthrough = False
    return True


class RequestPreparer:
    """Loads the files of requests, and sets up their attempts, tools and meters.

    Args:
        files: reads the files that requests reference.
        adaptation: converts media for models that do not read them.
        describe: answers the requests that describe media.
        signer: signs the thinking of providers that do not sign it themselves.
        refusals: the fields that models reject.
        metering: records the usage of requests.
        max_body_bytes: the maximum size of a request with its files.
    """

    def __init__(
        self,
        files: Files,
        adaptation: MediaAdaptation,
        describe: Generate,
        signer: thinking.Signer,
        refusals: Refusals,
        metering: Metering,
        max_body_bytes: int,
    ) -> None:
        self._files = files
        self._adaptation = adaptation
        self._describe = describe
        self._signer = signer
        self._refusals = refusals
        self._metering = metering
        self._max_body_bytes = max_body_bytes

    async def prepare(
        self,
        request: GenerateRequest,
        checked: CheckedRequest,
        charge: Charge,
        turn: RequestTurn | None = None,
        *,
        counts: bool = False,
        admit: Admit | None = None,
        task: str = "",
    ) -> PreparedRequest:
        """Load the files of a request and set up its attempts, tools and meter.

        Args:
            request: the request; its files are put in place.
            checked: the checked request.
            charge: the bytes that the request holds; those of its content are added.
            turn: its turn, if the request uses memory.
            counts: whether only input tokens are counted.
            admit: awaited before media are converted; may raise GatewayError.
            task: the helper task that the request does for another request, or "".
        """
        plan, providers = checked.plan, checked.providers
        conversation = None if turn is None else turn.conversation
        media = checked.media if conversation is None else conversation.callers_media
        all_media = media
        if request.HasField("fallback_config"):
            all_media = [*media, *overriding_media(request, plan)]
        stored: StoredFiles | None = None
        step_media = None
        if all_media or (conversation is not None and conversation.has_media):
            stored = StoredFiles(self._files, charge)
            # Memory and token counts are estimated from the content.
            loads_all = counts or turn is not None
            await self._place_files(
                request, checked, charge, all_media, conversation, stored, loads_all=loads_all
            )
            open_session = partial(
                self._adaptation.session,
                request.multimodal,
                checked.routes,
                self._describe,
                self._max_body_bytes,
                charge,
                stored,
                counts=counts,
                admit=admit,
            )
            is_remembered = conversation is not None
            step_media = StepMedia(media, providers, open_session, is_remembered=is_remembered)
        web = checked.routes.web
        rounds = None
        if checked.offers_tools or checked.has_tool_calls:
            rounds = Rounds(request, NOTHING if web is None else web.available, self._signer)
        attempts = RequestAttempts(
            request,
            media,
            plan,
            providers,
            self._signer,
            self._refusals,
            conversation,
            has_thinking=checked.has_thinking,
            step_media=step_media,
            rounds=rounds,
            stored=None if stored is None or stored.is_empty else stored,
        )
        tools = None
        if rounds is not None and checked.offers_tools and web is not None:
            tools = rounds, web
            await check_vector_stores(request, web.files)
        if counts:
            return PreparedRequest(plan, providers, attempts, tools, NO_METER)
        usage = None if task else current_usage.get(None)
        has_grown = bool(all_media) or conversation is not None
        if usage is not None and usage.extend is not None and has_grown:
            # The bytes of files, and the turns of a memory, were not known before.
            await usage.extend(await offload(attempts.prepared_tokens, plan.steps[0]), 0)
        if is_large():
            # Now it may take its time; the record is written at once when the request has ended.
            await offload(attempts.estimate)
        meter = self._metering.begin(request, attempts.input_tokens, task=task)
        return PreparedRequest(plan, providers, attempts, tools, meter)

    async def _place_files(
        self,
        request: GenerateRequest,
        checked: CheckedRequest,
        charge: Charge,
        media: Sequence[MediaRef],
        conversation: Conversation | None,
        stored: StoredFiles,
        *,
        loads_all: bool,
    ) -> None:
        """Put the files in place that a request and its memory name.

        Args:
            request: the request.
            checked: the checked request.
            charge: the bytes that the request holds; those of the files are added.
            media: the media that the request names.
            conversation: the conversation of a request with memory.
            stored: collects the files that providers read by themselves.
            loads_all: whether the bytes of all files are loaded.
        """
        remembered = {} if conversation is None else conversation.remembered_files
        plan = checked.plan
        providers = [checked.providers[step.target.adapter] for step in plan.steps]
        keep_foreign = any(provider.pass_stateful for provider in providers)
        sends_stored = not loads_all and all(one.sends_stored_files for one in providers)
        await place_files(
            media,
            self._files,
            charge,
            at_most=self._max_body_bytes,
            keep_foreign=keep_foreign,
            stored=stored if sends_stored else None,
        )
        await place_remembered_files(
            remembered,
            self._files,
            charge,
            [step.target for step in plan.steps],
            request.multimodal,
            at_most=self._max_body_bytes,
            keep_foreign=keep_foreign,
        )
