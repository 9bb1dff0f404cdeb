// How an answer came about: who gave it, how fast, and what was tried.
import { ApiError } from "../../api/client";
import { Failure } from "../../parts/failure";
import type { Attempt, Facts, Fault } from "./conversation";

export function FactLine({ facts }: { facts: Facts }) {
  const parts = [...route(facts), ...timings(facts), ...costs(facts)];
  if (parts.length === 0) return null;
  return (
    <>
      <Attempts attempts={facts.failed ?? []} />
      <ul class="facts" aria-label="How the answer came about">
        {parts.map((part) => (
          <li key={part}>{part}</li>
        ))}
      </ul>
    </>
  );
}

function route(facts: Facts): string[] {
  const parts: string[] = [];
  if (facts.model) parts.push(facts.provider ? `${facts.model} at ${facts.provider}` : facts.model);
  if ((facts.attempts ?? 0) > 1) {
    parts.push(`${facts.attempts} attempts${facts.step ? `, step ${facts.step}` : ""}`);
  }
  if (facts.dropped) parts.push(`without ${facts.dropped}`);
  if (facts.adapted) parts.push(`converted ${facts.adapted}`);
  return parts;
}

function timings({ firstMs, totalMs, outputTokens }: Facts): string[] {
  const parts: string[] = [];
  if (firstMs !== undefined) parts.push(`first token ${seconds(firstMs)}`);
  if (firstMs !== undefined && totalMs !== undefined && outputTokens) {
    const streamedS = (totalMs - firstMs) / 1000;
    // Of an answer that came at once there is no speed.
    if (streamedS > 0.05) parts.push(`${(outputTokens / streamedS).toFixed(0)} tokens/s`);
  }
  if (totalMs !== undefined) parts.push(`total ${seconds(totalMs)}`);
  return parts;
}

const dollars = new Intl.NumberFormat(undefined, {
  style: "currency",
  currency: "USD",
  maximumSignificantDigits: 3,
});

function costs({ inputTokens, outputTokens, cost }: Facts): string[] {
  const parts: string[] = [];
  if (inputTokens !== undefined || outputTokens !== undefined) {
    parts.push(`${inputTokens ?? 0} tokens in, ${outputTokens ?? 0} out`);
  }
  if (cost !== undefined) parts.push(dollars.format(cost));
  return parts;
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

export function FaultView({ fault }: { fault: Fault }) {
  const { message, status, code, param, requestId } = fault;
  return (
    <>
      <Failure error={new ApiError(message, status, code, param, requestId)} />
      <Attempts attempts={fault.attempts} />
    </>
  );
}

/** The failed attempts of a request one after the other, each as long as it took. */
function Attempts({ attempts }: { attempts: readonly Attempt[] }) {
  if (attempts.length === 0) return null;
  const total = Math.max(1, attempts.reduce((sum, { ms = 0 }) => sum + ms, 0));
  let before = 0;
  return (
    <ol class="attempts" aria-label="Failed attempts">
      {attempts.map(({ step, model, status, reason, ms = 0 }, index) => {
        const left = (100 * before) / total;
        before += ms;
        return (
          <li key={index}>
            <span>
              {model} <span class="hint">{step}</span>
            </span>
            <span>
              {status ?? "no answer"} <code>{reason}</code>
            </span>
            <span class="hint">{seconds(ms)}</span>
            <span class="track" aria-hidden="true">
              <span style={{ marginLeft: `${left}%`, width: `${(100 * ms) / total}%` }} />
            </span>
          </li>
        );
      })}
    </ol>
  );
}
