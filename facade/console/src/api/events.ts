// Server-sent events of a response.
import { createParser, type EventSourceMessage } from "eventsource-parser";

/** Return the events of a response as they come, until it ends. */
export async function* events(response: Response): AsyncGenerator<EventSourceMessage> {
  if (response.body === null) return;
  const read: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => read.push(event) });
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* read.splice(0);
  }
}
