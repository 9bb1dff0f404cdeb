// Who else has the document open.
import { useEffect } from "preact/hooks";

import { useLoaded } from "../../parts/loading";
import { editorWords } from "../../words/documents/editor";
import { useDocument } from "./context";

const text = editorWords.presence;
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
    <p class="hint presence" role="status" aria-label={text.title}>
      {text.others(names)}
    </p>
  );
}

function nameOf({ own, name, clientId }: OpenSession): string {
  if (!own) return name || text.deletedUser;
  if (clientId === undefined) return text.ownProgram;
  return clientId.startsWith("console-") ? text.otherTab : clientId;
}
