"""Usage records made of lines of the journal, with their costs. Pure."""

from collections.abc import Sequence

from gateway.accounts.v1.usage_pb2 import UsageRecord
from services.common.ids import RECORD, time_prefix
from services.inference.pricing.costs import Costs
from services.inference.pricing.counts import counts_from
from services.inference.pricing.price import Unit
from services.inference.usage.lines import FAILED, UsedLine, UsedModel


def records_of(line: UsedLine, file: str, number: int, costs: Costs) -> Sequence[UsageRecord]:
    """Return the records of a line.

    Args:
        line: what a request used.
        file: name of the journal's file; with the number it makes ids that are always the same.
        number: of the line in the file.
        costs: what answers cost.
    """
    time_ms = int(line.time_s * 1000)
    prefix = f"{time_prefix(RECORD, time_ms)}_{file}_{number:x}"
    made: list[UsageRecord] = []
    for place, used in enumerate(line.used):
        is_part = line.is_part or place > 0
        record = UsageRecord(
            id=f"{prefix}_{place:x}",
            time_ms=time_ms,
            request_id=line.request_id,
            user_id=line.user_id,
            team_id=line.team_id,
            key_id=line.key_id,
            endpoint=line.endpoint,
            requested_model=line.requested,
            model=used.model,
            provider=used.provider,
            upstream_model=used.upstream,
            step=line.step,
            outcome=line.outcome,
            attempts=0 if is_part else line.attempts,
            duration_ms=line.duration_ms,
            input_tokens=used.read or 0,
            output_tokens=used.wrote,
            cached_tokens=used.cached,
            cache_written_tokens=used.cached_anew,
            reasoning_tokens=used.reasoning,
            is_part=is_part,
        )
        if line.first_ms is not None and not is_part:
            record.first_content_ms = line.first_ms
        cost = _cost(line, used, costs, time_ms)
        if cost is not None:
            record.cost_pusd = cost
        made.append(record)
    return made


def _cost(line: UsedLine, used: UsedModel, costs: Costs, time_ms: int) -> int | None:
    if used.read is None:
        # Providers bill no failures, but answers whose usage they did not tell.
        return 0 if line.outcome == FAILED else None
    return cost_of_used(used, costs, time_ms)


def cost_of_used(used: UsedModel, costs: Costs, at_ms: int | None = None) -> int | None:
    """Return the cost of what a model used in picodollars, or None where it is not known.

    Args:
        used: what it used.
        costs: what answers cost.
        at_ms: when it was asked, in Unix milliseconds; by default now.
    """
    further = {Unit(name): count for name, count in (used.further or {}).items()}
    counts = counts_from(
        used.read or 0, used.wrote, used.cached, used.cached_anew, used.reasoning, further
    )
    return costs.cost_of_counts(counts, used.provider, used.model, used.upstream, at_ms)
