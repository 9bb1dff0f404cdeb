// Events of answers of models as JSON.
import { toError } from "./client";
import { events } from "./events";

/** Return the events of a streamed answer; throws ApiError for one that breaks the answer off. */
export async function* answerEvents(response: Response): AsyncGenerator<Record<string, unknown>> {
  for await (const { data } of events(response)) {
    if (data === "[DONE]") continue;
    const event: unknown = JSON.parse(data);
    if (!isObject(event)) continue;
    // What breaks an answer off comes as an event, in the shape of the error of an endpoint.
    if (isObject(event["error"])) throw toError(0, response.headers, data);
    const ended = event["response"];
    if (event["type"] === "response.failed" && isObject(ended)) {
      throw toError(0, response.headers, JSON.stringify(ended));
    }
    yield event;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
