// The version of the gateway.
import { signal } from "@preact/signals";

import { json } from "../api/client";

/** The version of the gateway; "" until it is loaded. */
export const version = signal("");

export async function loadVersion(): Promise<void> {
  try {
    version.value = (await json<{ version: string }>("/console/version")).version;
  } catch {
    // It is shown without.
  }
}
