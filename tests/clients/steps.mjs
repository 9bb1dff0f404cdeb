// Runs named steps one after the other and prints what each gave, or threw, as JSON.
//
//   node <script>.mjs ADDRESS KEY MODEL

export const [address, key, model] = process.argv.slice(2);
export const unknownKey = "gw-" + "A".repeat(43);

export async function run(steps) {
  const results = {};
  for (const [name, step] of Object.entries(steps)) {
    try {
      results[name] = { value: await step() };
    } catch (error) {
      results[name] = {
        error: error.constructor.name,
        status: error.status ?? null,
        type: error.type ?? null,
        code: error.code ?? null,
        param: error.param ?? null,
        message: String(error.message),
        requestId: error.requestID ?? null,
      };
    }
  }
  console.log(JSON.stringify(results));
}

export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}
