// A document's session, opened once more when it is over.
import { call, isSessionOver } from "./articles";

const CLIENT_KEY = "gateway.document-client";

/**
 * Return the id of this tab as a client of the API.
 *
 * It has sessions of its own: closing a document here ends nobody else's work, and undoing takes
 * back what was done here alone.
 */
function clientId(): string {
  let id = sessionStorage.getItem(CLIENT_KEY);
  if (id === null) {
    const random = crypto.getRandomValues(new Uint32Array(2));
    id = `console-${[...random].map((part) => part.toString(36)).join("")}`;
    sessionStorage.setItem(CLIENT_KEY, id);
  }
  return id;
}

export class Session {
  #id: Promise<string> | undefined;

  constructor(readonly docId: string) {}

  /** Send a call that names the session; `body` is made anew for each attempt. */
  async call<T>(path: string, body: () => object, signal?: AbortSignal): Promise<T> {
    const id = this.#open();
    try {
      return await call<T>(path, { ...body(), sessionId: await id }, signal);
    } catch (error) {
      if (!isSessionOver(error)) throw error;
      // Of the calls that find it over at once, the first opens the next one.
      if (this.#id === id) this.#id = undefined;
      return call<T>(path, { ...body(), sessionId: await this.#open() }, signal);
    }
  }

  /** End the session; one that is over already is no error. */
  async end(): Promise<void> {
    if (this.#id === undefined) return;
    try {
      await call("session/destroy", { sessionId: await this.#id });
    } catch (error) {
      if (!isSessionOver(error)) throw error;
    } finally {
      this.#id = undefined;
    }
  }

  #open(): Promise<string> {
    if (this.#id === undefined) {
      const opened = call<{ sessionId: string }>("session/create", {
        docId: this.docId,
        clientId: clientId(),
      });
      const id = opened.then((data) => data.sessionId);
      id.catch(() => {
        if (this.#id === id) this.#id = undefined;
      });
      this.#id = id;
    }
    return this.#id;
  }
}
