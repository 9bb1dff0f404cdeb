// What happened to a request over its time: attempts that failed, the one that answered.
import { duration } from "../../parts/formats";
import { requestsWords } from "../../words/requests";
import type { RequestDetails } from "./log";

const text = requestsWords;

interface Span {
  name: string;
  note: string;
  state: "failed" | "waited" | "answered";
  fromMs: number;
  ms: number;
}

export function Timeline({ request }: { request: RequestDetails }) {
  const spans = spansOf(request);
  if (spans.length === 0) return <p class="hint">{text.noAttempts}</p>;
  const total = Math.max(1, request.duration_ms, ...spans.map(({ fromMs, ms }) => fromMs + ms));
  return (
    <ol class="timeline" aria-label={text.timeline}>
      {spans.map(({ name, note, state, fromMs, ms }, index) => (
        <li key={index} class={state}>
          <span class="name">
            {name} <span class="hint">{note}</span>
          </span>
          <span class="hint">{duration(ms)}</span>
          <span class="track" aria-hidden="true">
            <span
              style={{
                marginLeft: `${(100 * fromMs) / total}%`,
                width: `${Math.max(0.5, (100 * ms) / total)}%`,
              }}
            />
          </span>
        </li>
      ))}
    </ol>
  );
}

/** Return the spans of a request; attempts that failed ran one after the other. */
function spansOf(request: RequestDetails): Span[] {
  const spans: Span[] = [];
  let at = 0;
  for (const { model, step, status, reason, ms } of request.failed_attempts) {
    const note = [step !== "primary" && step, status ?? text.noAnswer, reason];
    spans.push({ name: model, note: note.filter(Boolean).join(" · "), state: "failed", fromMs: at, ms });
    at += ms;
  }
  if (request.model === null || request.error_code !== null) return spans;
  const rest = Math.max(0, request.duration_ms - at);
  const name = request.provider ? `${request.provider}/${request.model}` : request.model;
  const first = request.first_content_ms;
  if (first === null || first < at) {
    return [...spans, { name, note: text.answered, state: "answered", fromMs: at, ms: rest }];
  }
  const streamed = Math.max(0, request.duration_ms - first);
  return [
    ...spans,
    { name, note: text.untilFirst, state: "waited", fromMs: at, ms: first - at },
    { name, note: text.streamed, state: "answered", fromMs: first, ms: streamed },
  ];
}
