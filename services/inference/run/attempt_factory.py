"""Makes the attempts of one request, each with the request as adapted to the step's model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingBlockStrategy
from services.common.errors import unsupported
from services.common.messages.lazy_request import LazyRequest
from services.inference.adaptation.rules import adapts
from services.inference.attempt import Attempt
from services.inference.circuit_breaker import ModelKey
from services.inference.client_tools.rewriting import WithFunctions, with_functions
from services.inference.fallback.attempts import AttemptOptions
from services.inference.learned.refusals import MEDIA, PREFILL, Refusals, all_refused
from services.inference.limits.input_tokens import most_input_tokens
from services.inference.media import MediaRef
from services.inference.memory.conversation import Conversation
from services.inference.offload import offload
from services.inference.plans.plan import Plan, Step
from services.inference.providers.base import AnswerForm, Call, Provider, Target
from services.inference.request import estimate, thinking, validation
from services.inference.request.allowed_tools import limits_tools, with_allowed_tools
from services.inference.request.request_changes import (
    can_prefill,
    continued,
    copied,
    generates_nothing,
    without_stop_sequences,
)
from services.inference.run.compaction_abilities import may_compact
from services.inference.run.step_media import StepMedia
from services.inference.run.step_request import StepRequest, prepare_for, with_output_bound
from services.inference.stored_files import StoredFiles
from services.inference.stream.client_calls import ClientCallFilter
from services.inference.stream.continuation import Continuation
from services.inference.stream.filters import StreamFilter
from services.inference.stream.helper_usage import HelperUsageFilter
from services.inference.stream.prefill import EchoFilter, prefill_of
from services.inference.stream.refusals import RefusalFilter
from services.inference.stream.replay import ReplayAligner
from services.inference.stream.stop_sequences import StopSequenceFilter
from services.inference.tools.rounds import Rounds

_THINKING = "messages[].blocks[].thinking"


class RequestAttempts:
    """Makes the attempts of one request; see `fallback.attempts.AttemptFactory`.

    Args:
        request: the request, with the bytes of files in place. It is modified only if the plan
            has a single step.
        media: the media of the request.
        plan: the plan.
        providers: the providers, by name.
        signer: makes and verifies the gateway's signatures.
        refusals: fields that models have rejected; new ones are added.
        conversation: the stored and the sent conversation; None without memory.
        has_thinking: whether the request may contain thinking.
        lazy: the lazy request; None if the request is complete.
        step_media: converts the media of the request; None if it has none.
        rounds: makes the request of a round; None if the gateway's own tools are not used.
        stored: the files whose content is read when it is needed.
    """

    def __init__(
        self,
        request: GenerateRequest,
        media: Sequence[MediaRef],
        plan: Plan,
        providers: Mapping[str, Provider],
        signer: thinking.Signer,
        refusals: Refusals,
        conversation: Conversation | None = None,
        *,
        has_thinking: bool = True,
        lazy: LazyRequest | None = None,
        step_media: StepMedia | None = None,
        rounds: Rounds | None = None,
        stored: StoredFiles | None = None,
    ) -> None:
        self._request = request
        self._stored = stored
        self._media = media
        self._alone = len(plan.steps) == 1
        self._last_step = plan.steps[-1]
        self._providers = providers
        self._signer = signer
        self._refusals = refusals
        self._conversation = conversation
        self._has_thinking = has_thinking
        # Whether requests of steps may have messages that the caller's has not.
        self._adds_messages = (
            rounds is not None or not self._alone or self._last_step.parameters is not None
        )
        self._lazy = lazy
        self._prepared: tuple[Step, StepRequest] | None = None  # the latest
        self._step_media = step_media
        self._rounds = rounds
        self._input_tokens: int | None = None

    def estimate(self) -> None:
        """Estimate the input tokens in advance, for `input_tokens`."""
        self._input_tokens = self.input_tokens()

    def input_tokens(self) -> int:
        """Estimate the input tokens of the latest request for a step, or of the caller's."""
        if self._input_tokens is not None:
            return self._input_tokens
        if self._lazy is not None:
            return estimate.estimate_lazy(self._lazy)
        request = self._request if self._prepared is None else self._prepared[1].request
        return estimate.estimate_input_tokens(request)

    def reserved_tokens(self, step: Step) -> int:
        """Return the estimated input, and `max_tokens` for each answer; see `AttemptFactory`."""
        request = self._request if step.parameters is None else self.prepare(step).request
        return self.input_tokens() + request.max_tokens * max(1, request.n)

    def prepared_tokens(self, step: Step) -> int:
        """Return the most input tokens of the request as adapted to a step's model."""
        return most_input_tokens(self.prepare(step).request)

    def prepare(self, step: Step) -> StepRequest:
        """Return the request as adapted to a step's model, with media converted by `adapt`."""
        step_media = self._step_media
        if step_media is not None and (converted := step_media.converted(step)) is not None:
            return converted
        if self._prepared is None or self._prepared[0] is not step:
            prepared = prepare_for(
                step,
                self._request,
                self._media,
                self._conversation,
                self._providers,
                is_only_step=self._alone,
            )
            self._prepared = step, prepared
        return self._prepared[1]

    def may_convert(self, step: Step) -> bool:
        """Return whether media may have to be converted for a step; see `AttemptFactory`."""
        return self._step_media is not None and self._step_media.may_convert(
            step, self.refused(step)
        )

    async def adapt(self, step: Step) -> None:
        """Convert the media that a step's model does not read; see `AttemptFactory`."""
        step_media = self._step_media
        assert step_media is not None, "the request has no media"
        prepared = await offload(self.prepare, step)
        # The request of a plan with a single step is modified in place.
        in_place = self._alone or prepared.request is not self._request
        await step_media.convert(step, prepared, self.refused(step), in_place=in_place)

    @property
    def guesses(self) -> bool:
        """Whether the output of helper models was guessed, because only tokens are counted."""
        return self._step_media is not None and self._step_media.guesses

    def converts(self, step: Step, field: str) -> bool:
        """Return whether a rejected kind of media can be converted; see `AttemptFactory`."""
        kind, prepared = MEDIA[field], self.prepare(step)
        return adapts(prepared.request.multimodal, kind) and any(
            media_ref.block.media.kind == kind for media_ref in prepared.media
        )

    def complete(self, step: Step) -> StepRequest:
        """Return the request of `prepare`, with the gateway's own tools if they are used.

        Raises:
            GatewayError: as `prepare`; unsupported, if it has a tool that is not available.
        """
        prepared = self.prepare(step)
        if self._rounds is None:
            return prepared
        dialect = self._providers[step.target.adapter].dialect
        request, dropped = self._rounds.request_of(prepared.request, step, dialect)
        return prepared._replace(request=request, dropped=[*prepared.dropped, *dropped])

    def attempt(self, step: Step, options: AttemptOptions) -> tuple[Attempt, bool]:
        """Return an attempt, and whether its request ends with the delivered text to continue.

        Raises:
            GatewayError: as `complete`.
        """
        provider = self._providers[step.target.adapter]
        lazy = self._lazy
        if lazy is not None and not self._takes_verbatim(lazy, step, provider, options):
            lazy = None
        target = self._bounded(step, options.output_room)
        prepared = self.complete(step)
        if target is not step.target:
            prepared = with_output_bound(prepared, target.max_output_tokens)
        request = prepared.request
        if request.HasField("compaction") and not may_compact(request, provider):
            raise unsupported("compaction", "compaction: this model's provider cannot compact")
        if generates_nothing(request) and provider.dialect != request.dialect:
            raise unsupported("max_tokens", "max_tokens: must be at least 1 for this model")
        filters: list[StreamFilter] = []
        continues = False
        if (delivered := options.delivered) is not None:
            text = delivered.text
            continues = (
                text is not None
                and bool(text.strip())
                and provider.prefills
                and PREFILL not in options.refused_fields
                and can_prefill(request)
            )
            if continues:
                request = continued(request, text or "")
                filters.append(Continuation(delivered))
            else:
                filters.append(ReplayAligner(delivered, provider.name))
        if options.discards_thinking:
            request = copied(request)
            request.thinking_block_strategy = ThinkingBlockStrategy.THINKING_BLOCK_STRATEGY_DISCARD
        request, tools, dropped, adapted, schema_paths = self.translated(provider, request)
        if dropped or adapted:
            prepared = prepared._replace(
                dropped=[*prepared.dropped, *dropped], adapted=[*prepared.adapted, *adapted]
            )
        if tools:
            # Before the filters that compare or count the caller's events.
            filters.insert(0, ClientCallFilter(tools))
        if self._leaves_refusals(step):
            filters.append(RefusalFilter(provider.name))
        if self._step_media is not None and (helpers := self._step_media.helpers):
            filters.append(HelperUsageFilter(helpers))
        return (
            self._attempt(
                target, provider, request, options, filters, prepared, lazy, schema_paths
            ),
            continues,
        )

    def _attempt(
        self,
        target: Target,
        provider: Provider,
        request: GenerateRequest,
        options: AttemptOptions,
        last: Sequence[StreamFilter],
        prepared: StepRequest,
        lazy: LazyRequest | None,
        schema_paths: Mapping[str, str],
    ) -> Attempt:
        """Return an attempt with the filters that its request needs, followed by `last`."""
        stream = options.stream
        filters: list[StreamFilter] = []
        if not (provider.prefills and PREFILL not in options.refused_fields) and (
            prefill := prefill_of(request)
        ):
            filters.append(EchoFilter(prefill, request.n or 1))
        if _needs_stop_filter(request, provider):
            estimate_input = partial(estimate.estimate_input_tokens, request)
            stops = StopSequenceFilter(request.stop_sequences, request.n or 1, estimate_input)
            filters.append(stops)
            # Only a stream can be ended at a stop sequence.
            stream = True
            request = without_stop_sequences(request)
        filters += last
        accepts = AnswerForm.EVENTS
        if not filters:
            accepts = self._accepted_form(request, provider, stream=stream)
        stored = self._stored
        if stored is not None:
            request = stored.with_tokens(request)
        call = Call(
            request,
            target,
            stream,
            list(prepared.dropped),
            accepts,
            options.refused_fields,
            lazy,
            stored=stored,
            schema_paths=schema_paths,
        )
        return Attempt(call, provider, filters, prepared.left_out, prepared.adapted, self._signer)

    def direct_attempt(self, step: Step, *, stream: bool) -> Attempt | None:
        """Return an attempt made of the lazy request as it is; see `AttemptFactory`."""
        lazy, request = self._lazy, self._request
        if lazy is None:
            return None
        target, refused_fields = step.target, step.target.refuses
        refusals = self._refusals
        if refused_fields or refusals.by_model or refusals.output_bounds.by_model:
            target, refused_fields = self._bounded(step), self.refused(step)
        provider = self._providers[target.adapter]
        is_own = provider.dialect == request.dialect
        accepts = self._accepted_form(request, provider, stream=stream)
        plain = None if is_own else lazy.plain
        if (
            step.parameters is not None
            or (
                not is_own
                and (
                    plain is None
                    or (request.HasField("tool_choice") and limits_tools(request, provider.dialect))
                    or (not request.max_tokens and generates_nothing(request))
                )
            )
            or (target.max_output_tokens and request.max_tokens > target.max_output_tokens)
            or (request.stop_sequences and _needs_stop_filter(request, provider))
            or (step.leaves_refusals and self._leaves_refusals(step))
            or (
                refused_fields
                and is_own
                and lazy.has_whole_body
                and not refused_fields.isdisjoint(lazy.fields)
            )
        ):
            return None
        if not provider.takes_lazy(lazy, refused_fields):
            return None
        if plain is not None and not stream:
            accepts = AnswerForm.PLAIN
        call = Call(
            request,
            target,
            stream,
            [],
            accepts,
            refused_fields,
            lazy,
            plain=plain,
        )
        return Attempt(call, provider, signer=self._signer)

    def _leaves_refusals(self, step: Step) -> bool:
        """Return whether a refusal leads to the next step; that of the last step is the answer."""
        return step.leaves_refusals and step is not self._last_step and self._request.n <= 1

    def _accepted_form(
        self, request: GenerateRequest, provider: Provider, *, stream: bool
    ) -> AnswerForm:
        """Return the form in which an answer that is not filtered may be returned.

        A stream with native events cannot be continued by another model. Streams are therefore
        passed through only for a plan with a single step, and only in the dialect of responses.
        """
        is_own = request.dialect == provider.dialect
        if stream:
            passes = is_own and provider.dialect == conversation_pb2.DIALECT_RESPONSES
            is_taken = request.takes_passthrough and self._alone
            return AnswerForm.PASSTHROUGH if passes and is_taken else AnswerForm.EVENTS
        if is_own and request.takes_passthrough:
            return AnswerForm.PASSTHROUGH
        return AnswerForm.WHOLE if self._rounds is None else AnswerForm.EVENTS

    def _takes_verbatim(
        self, lazy: LazyRequest, step: Step, provider: Provider, options: AttemptOptions
    ) -> bool:
        """Return whether an attempt can send the conversation as its caller wrote it.

        If not, the lazy request is completed.
        """
        if (
            not lazy.has_whole_body
            and provider.dialect == self._request.dialect
            and step.parameters is None
            and options.delivered is None
            and not options.discards_thinking
            and provider.takes_lazy(lazy, options.refused_fields)
        ):
            return True
        kinds = validation.check(lazy.complete())
        self._has_thinking = not thinking.KINDS.isdisjoint(kinds)
        self._lazy = self._prepared = None
        return False

    def refused(self, step: Step) -> frozenset[str]:
        """Return the fields that a step's model rejects or has rejected, as named by `refusals`."""
        refused_always = step.target.refuses
        if not (refused_always or self._refusals.by_model):
            return refused_always
        return all_refused(refused_always, self._refusals.of(step.key))

    def learn_output_bound(self, step: Step, bound: int) -> bool:
        """Record a model's largest accepted `max_tokens`; return whether it is a new one."""
        bounds, limit = self._refusals.output_bounds, step.target.max_output_tokens
        before = bounds.of(step.key, limit)
        if before and bound >= before:
            return False
        bounds.add(step.key, bound)
        return True

    def _bounded(self, step: Step, room: int = 0) -> Target:
        """Return a step's model, with the output bound that was learnt of it.

        Args:
            step: the step.
            room: see `AttemptOptions.output_room`.
        """
        target, bounds = step.target, self._refusals.output_bounds
        if not (bounds.by_model or room):
            return target
        limit = bounds.of(step.key, target.max_output_tokens)
        if room:
            limit = min(limit or room, room)
        return (
            target
            if limit == target.max_output_tokens
            else replace(target, max_output_tokens=limit)
        )

    def learn_refusal(self, key: ModelKey, name: str) -> None:
        """Record that a model rejects a field, or PREFILL."""
        self._refusals.add(key, name)

    def translated(self, provider: Provider, request: GenerateRequest) -> WithFunctions:
        """Return a request with thinking and tools as a provider of its dialect takes them.

        Raises:
            GatewayError: invalid, for a malformed tool.
        """
        seen = request
        if self._has_thinking or (self._adds_messages and request is not self._request):
            seen = thinking.apply_strategy(
                request,
                target_checks=provider.checks_signatures,
                target_dialect=provider.dialect,
                signer=self._signer,
            )
        dialect = provider.dialect
        allowed = with_allowed_tools(seen, dialect) if seen.HasField("tool_choice") else seen
        sent = WithFunctions(allowed)
        if request.dialect != dialect:
            sent = with_functions(allowed, dialect)
        if seen is not request and thinking.loses_thinking(self._request, request, seen):
            return sent._replace(dropped=[*sent.dropped, _THINKING])
        return sent


def _needs_stop_filter(request: GenerateRequest, provider: Provider) -> bool:
    """Return whether the gateway has to report the stop sequence in the provider's place."""
    return (
        bool(request.stop_sequences)
        and not provider.reports_stop_sequence
        and not request.omits_stop_sequence
    )
