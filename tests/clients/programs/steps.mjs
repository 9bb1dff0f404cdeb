// Runs the steps of a program against a gateway: `node try.mjs ADDRESS KEY MODEL...`.
// The first four models are one of each kind of provider, the fifth is of one with OpenAI's
// responses of its own, the others are of personalities.

export const [address, key, ...models] = process.argv.slice(2);
export const kinds = models.slice(0, 4);
export const ofResponses = models.slice(0, 5);
// Claude at Bedrock and at Vertex AI.
export const clouds = (process.env.CLOUDS ?? "").split(" ").filter(Boolean);
// Models that make vectors; Anthropic's API has none.
export const embedding = kinds
  .filter((model) => !model.startsWith("anthropic/"))
  .map((model) => model.replace(/[^/]+$/, "embed"));
const ofAnthropic = ["anthropic", "claude-5"];
const silent = ["azure", "openai-o", "gemini-openai"];

// Whether a model's provider has a JSON mode; others are told in words, which the sandbox quotes.
export const hasJsonMode = (model) => !ofAnthropic.includes(model.split("/")[0]);

// Whether a model's provider shows what the model thinks.
export const showsThoughts = (model) => !silent.includes(model.split("/")[0]);

export function check(holds, told) {
  if (!holds) throw new Error(JSON.stringify(told).slice(0, 2_000));
}

// Runs all steps over the kinds that the gateway answers in ways of their own for a caller of a
// dialect, and one of them over the other kinds: each step starts a program, which takes seconds.
export async function runSampled(steps, one, ofAll = ["openai", "anthropic"], over = kinds) {
  const sampled = over.filter((model) => ofAll.includes(model.split("/")[0]));
  await run(steps, sampled);
  await run({ [one]: steps[one] }, over.filter((model) => !sampled.includes(model)));
}

export async function run(steps, over = models) {
  for (const model of over) {
    for (const [name, step] of Object.entries(steps)) {
      try {
        await step(model);
        console.log(`passed: ${name} with ${model}`);
      } catch (error) {
        process.exitCode = 1;
        console.log(`FAILED: ${name} with ${model}\n${error.stack}`);
      }
    }
  }
}
