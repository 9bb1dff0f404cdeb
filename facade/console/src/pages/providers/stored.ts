// Providers that administrators store, tests of providers, and the models that are offered.
import { json } from "../../api/client";
import { type List, call } from "../../admin/calls";

export const KINDS = ["openai", "anthropic", "gemini"] as const;
export type Kind = (typeof KINDS)[number];

export interface StoredProvider {
  id: string;
  kind: Kind;
  base_url: string;
  has_key: boolean;
  state: "active" | "hidden" | "locked";
  /** Unix seconds. */
  key_set_at: number;
}

export interface Preset {
  id: string;
  kind: Kind;
  base_url: string;
  /** Environment variable with its key. */
  key_variable: string;
}

export interface StoredProviders extends List<StoredProvider> {
  /** Whether the gateway has a key that encrypts those of providers. */
  can_store: boolean;
  presets: readonly Preset[];
}

export interface ProviderTest {
  outcome: "valid" | "key_rejected" | "no_list" | "unreachable" | "not_allowed" | "failed";
  status: number | null;
  models: readonly string[];
  duration_ms: number;
}

/** The body of a request that tests or stores a provider; a preset needs its key alone. */
export interface Described {
  kind?: Kind;
  base_url?: string;
  api_key?: string;
}

export interface Model {
  id: string;
  owned_by: string;
  max_input_tokens: number | null;
  /** Decimal dollars for a million tokens. */
  pricing: { input: string; output: string } | null;
  capabilities: { inputs: string[]; tools: boolean | null; thinking: boolean | null };
}

const at = (list: string, name: string): string => `/admin/v1/${list}/${encodeURIComponent(name)}`;

export const listStored = (signal?: AbortSignal): Promise<StoredProviders> =>
  call("/admin/v1/stored-providers", { signal });

export const storeProvider = (name: string, described: Described): Promise<StoredProvider> =>
  call(at("stored-providers", name), { method: "PUT", json: described });

export const removeProvider = (name: string): Promise<unknown> =>
  call(at("stored-providers", name), { method: "DELETE" });

/** Test a provider: as it is in use, or as it is described. */
export const testProvider = (name: string, described: Described = {}): Promise<ProviderTest> =>
  call(`${at("providers", name)}/test`, { method: "POST", json: described });

export async function listModels(signal?: AbortSignal): Promise<readonly Model[]> {
  return (await json<{ data: Model[] }>("/v1/models", { signal })).data;
}

/** Return the lines of gateway.toml that add a provider, with its key in the environment. */
export function settingsLines(name: string, described: Described, variable: string): string {
  const quoted = (text: string): string => JSON.stringify(text);
  const key = /^[A-Za-z0-9_-]+$/.test(name) ? name : quoted(name);
  const address =
    described.base_url === undefined
      ? []
      : [`kind = ${quoted(described.kind ?? "openai")}`, `base_url = ${quoted(described.base_url)}`];
  return [`[providers.${key}]`, ...address, `api_key_env = ${quoted(variable)}`].join("\n");
}
