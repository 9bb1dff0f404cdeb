// How an answer came about: who gave it, how fast, and what was tried.
import { ApiError } from "../../api/client";
import { Failure } from "../../parts/failure";
import { duration, money } from "../../parts/formats";
import { chatWords } from "../../words/chat";
import type { Attempt, Facts, Fault } from "./conversation";

const text = chatWords.facts;

export function FactLine({ facts }: { facts: Facts }) {
  const parts = [...route(facts), ...timings(facts), ...costs(facts)];
  if (parts.length === 0) return null;
  return (
    <>
      <Attempts attempts={facts.failed ?? []} />
      <ul class="facts" aria-label={text.title}>
        {parts.map((part) => (
          <li key={part}>{part}</li>
        ))}
      </ul>
    </>
  );
}

function route(facts: Facts): string[] {
  const parts: string[] = [];
  if (facts.model) parts.push(facts.provider ? text.route(facts.model, facts.provider) : facts.model);
  const { attempts = 0, step = "" } = facts;
  if (attempts > 1) parts.push(text.tries(attempts, step));
  if (facts.dropped) parts.push(text.dropped(facts.dropped));
  if (facts.adapted) parts.push(text.adapted(facts.adapted));
  return parts;
}

function timings({ firstMs, totalMs, outputTokens }: Facts): string[] {
  const parts: string[] = [];
  if (firstMs !== undefined) parts.push(text.first(duration(firstMs)));
  if (firstMs !== undefined && totalMs !== undefined && outputTokens) {
    const streamedS = (totalMs - firstMs) / 1000;
    // Of an answer that came at once there is no speed.
    if (streamedS > 0.05) parts.push(text.speed(outputTokens / streamedS));
  }
  if (totalMs !== undefined) parts.push(text.total(duration(totalMs)));
  return parts;
}

function costs({ inputTokens, outputTokens, cost }: Facts): string[] {
  const parts: string[] = [];
  if (inputTokens !== undefined || outputTokens !== undefined) {
    parts.push(text.tokens(inputTokens ?? 0, outputTokens ?? 0));
  }
  if (cost !== undefined) parts.push(money(cost));
  return parts;
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
    <ol class="attempts" aria-label={text.attempts}>
      {attempts.map(({ step, model, status, reason, ms = 0 }, index) => {
        const left = (100 * before) / total;
        before += ms;
        return (
          <li key={index}>
            <span>
              {model} <span class="hint">{step}</span>
            </span>
            <span>
              {status ?? text.noAnswer} <code>{reason}</code>
            </span>
            <span class="hint">{duration(ms)}</span>
            <span class="track" aria-hidden="true">
              <span style={{ marginLeft: `${left}%`, width: `${(100 * ms) / total}%` }} />
            </span>
          </li>
        );
      })}
    </ol>
  );
}
