// English texts of the page of providers and models.
import { exact } from "../parts/formats";
import { plural } from "./plural";

export const providersWords = {
  title: "Providers and models",
  tabs: { label: "What to show", choices: { providers: "Providers", models: "Models" } },
  health: "Health",
  list: "Providers",
  none: "There are no providers yet",
  noneHint: "Add one above.",
  window: (seconds: number, workers: number) =>
    `Attempts of the last ${exact(seconds / 60)} minutes, over ${plural(workers, "worker", "workers")}.`,
  states: { healthy: "healthy", degraded: "degraded", down: "down" },
  stored: { hidden: "not used", locked: "locked" },
  storedHint: {
    hidden: "The settings or the environment have a provider of this name, which is used instead.",
    locked:
      "The gateway lacks the key that encrypted this provider’s. Put it back into the settings, or remove the provider and add it again.",
  },
  builtIn: "Built in.",
  ruled:
    "From gateway.toml, the environment or this machine, which rule: it is changed there, not here.",
  keySet: (at: string) => `key set ${at}`,
  noKey: "no key",
  notCalled: "None of its models was called in that time.",
  modelsOf: (name: string) => `Models of ${name}`,
  cools: (at: string) => `cools until ${at}`,
  columns: {
    model: "Model",
    breaker: "Breaker",
    attempts: "Attempts",
    failed: "Failed",
    first: "First content",
    duration: "Duration",
    failure: "Last failure",
  },
  remove: "Remove",
  removeQuestion: (name: string) =>
    `Remove ${name} and its key? Requests to its models fail from then on.`,
  rotate: {
    act: "Rotate key",
    set: "Set key",
    of: (name: string) => `New key of ${name}`,
    key: "New key",
    save: "Test and save",
  },
  test: {
    act: "Test",
    outcomes: {
      valid: "The key works",
      key_rejected: "The key is rejected",
      no_list: "The server answers, but lists no models; the key was not checked",
      unreachable: "No server answers there",
      not_allowed: "The address is internal, which the settings do not allow",
      failed: "The server answers with an error",
    },
    models: (count: number) => plural(count, "model", "models"),
    status: (status: number) => `HTTP ${status}`,
  },
  add: {
    title: "Add a provider",
    provider: "Provider",
    other: "Another server…",
    name: "Name",
    kind: "API",
    kinds: { openai: "OpenAI’s", anthropic: "Anthropic’s", gemini: "Gemini’s" },
    address: "Address",
    addressExample: "https://llm.example.com/v1",
    key: "Key",
    optionalKey: "Key (optional)",
    test: "Test",
    add: "Add",
    show: "Show the lines",
    cannotStore:
      "This gateway has no key to encrypt those of providers (GATEWAY_ENCRYPTION_KEYS), so it stores none. Keys can be tested here, and the lines for gateway.toml are shown.",
    lines: "Add these lines to gateway.toml, set the variable, and run “gateway reload”:",
    theLines: "the lines",
  },
  models: {
    title: "Models",
    search: "Search models",
    none: "No models",
    noneHint: "Add a provider; its models are listed some seconds later.",
    first: (shown: number, all: number) => `The first ${exact(shown)} of ${exact(all)}; search for others.`,
    tools: "tools",
    thinking: "thinking",
    columns: {
      name: "Name",
      provider: "Provider",
      abilities: "Abilities",
      context: "Context (tokens)",
      input: "In, for a million",
      output: "Out, for a million",
      fallbacks: "Fallbacks",
    },
  },
} as const;
