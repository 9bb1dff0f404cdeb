// Runs the steps of a program against a gateway, with each model: `node try.mjs ADDRESS KEY`.

export const [address, key] = process.argv.slice(2);
const everyModel = ["openai/echo", "anthropic/echo", "gemini/echo", "sandbox/echo"];

export function check(holds, told) {
  if (!holds) throw new Error(JSON.stringify(told).slice(0, 2_000));
}

export async function run(steps, models = everyModel) {
  for (const model of models) {
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
