// Who else has the document open.
import { useEffect } from "preact/hooks";

import { useLoaded } from "../../parts/loading";
import { useDocument } from "./context";

const EVERY_MS = 10_000;
// Those who asked for nothing for so long have left the page, though their sessions last longer.
const HERE_MS = 60_000;

interface OpenSession {
  user: string;
  name: string;
  own: boolean;
  this: boolean;
  clientId?: string;
  /** Milliseconds since the last call. */
  idle: number;
}

export function Presence() {
  const { document: opened } = useDocument();
  const { data, reload } = useLoaded(
    (signal) => opened.session.call<{ sessions: OpenSession[] }>("session/list", () => ({}), signal),
    [opened],
  );
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [reload]);
  const others = (data?.sessions ?? []).filter((one) => !one.this && one.idle < HERE_MS);
  if (others.length === 0) return null;
  const names = [...new Set(others.map(nameOf))];
  return (
    <p class="hint presence" role="status" aria-label="Who else is here">
      Also here: {names.join(", ")}
    </p>
  );
}

function nameOf({ own, name, clientId }: OpenSession): string {
  if (!own) return name || "a deleted user";
  if (clientId === undefined) return "a program of yours";
  return clientId.startsWith("console-") ? "you, in another tab" : clientId;
}
