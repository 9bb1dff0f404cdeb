// Server-sent events of a response.
import { createParser, type EventSourceMessage } from "eventsource-parser";

/** Return the events of a response as they come, until it ends. */
export async function* events(response: Response): AsyncGenerator<EventSourceMessage> {
  if (response.body === null) return;
  const read: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => read.push(event) });
  const decoder = new TextDecoder();
  // WebKit has no iterator of streams.
  const reader = response.body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parser.feed(decoder.decode(part.value, { stream: true }));
      yield* read.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
