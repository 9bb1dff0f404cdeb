// What answers cost, by the prices that the gateway lists with its models.
import { json } from "../../api/client";
import type { Facts } from "./conversation";

/** Decimal dollars for a million tokens. */
interface Pricing {
  input: string;
  output: string;
  cached_input: string;
  cache_write: string;
  reasoning: string;
}

const known = new Map<string, Promise<Pricing | null>>();

/** Return what an answer cost in dollars; undefined where its model has no known prices. */
export async function costOf(facts: Facts): Promise<number | undefined> {
  if (facts.model === undefined || facts.outputTokens === undefined) return undefined;
  const pricing = await pricingOf(facts.model);
  return pricing === null ? undefined : cost(facts, pricing);
}

function pricingOf(model: string): Promise<Pricing | null> {
  let found = known.get(model);
  if (found === undefined) {
    const path = `/v1/models/${model.split("/").map(encodeURIComponent).join("/")}`;
    // Without prices an answer is as good; what fails is asked again with the next one.
    found = json<{ pricing: Pricing | null }>(path).then(
      ({ pricing }) => pricing,
      () => {
        known.delete(model);
        return null;
      },
    );
    known.set(model, found);
  }
  return found;
}

function cost(facts: Facts, pricing: Pricing): number {
  const { inputTokens = 0, outputTokens = 0 } = facts;
  const { cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = facts;
  const dollars =
    (inputTokens - cachedTokens - cacheWriteTokens) * Number(pricing.input) +
    cachedTokens * Number(pricing.cached_input) +
    cacheWriteTokens * Number(pricing.cache_write) +
    (outputTokens - reasoningTokens) * Number(pricing.output) +
    reasoningTokens * Number(pricing.reasoning);
  return dollars / 1_000_000;
}
