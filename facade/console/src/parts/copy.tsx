// A button that copies a text.
import { useEffect, useState } from "preact/hooks";

import { words } from "../words/common";

const SHOWN_MS = 2000;

export function CopyButton({
  text,
  label,
  name,
}: {
  text: string;
  label: string;
  /** What it copies, for screen readers. */
  name?: string;
}) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  // Pages that did not come over TLS, or from this machine, have no clipboard.
  if (!("clipboard" in navigator)) return null;
  return (
    <button
      type="button"
      class="quiet small"
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
    >
      {isCopied ? words.copied : label}
      {name && <span class="visually-hidden"> {name}</span>}
    </button>
  );
}
