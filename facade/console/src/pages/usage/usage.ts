// What the caller has used, and what is left of the limits.
import { json } from "../../api/client";
import type { LimitUsage } from "../../parts/limit_states";

export interface Period {
  period: string;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  estimated: number;
  cost: string;
}

export interface CallerUsage {
  limits: LimitUsage[];
  allowed_models: { subject_kind: string; models: string[] }[];
  usage: { day: Period; month: Period };
}

export function getUsage(signal?: AbortSignal): Promise<CallerUsage> {
  return json<CallerUsage>("/v1/usage/me", { signal });
}
