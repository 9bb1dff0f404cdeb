// The Markdown of the document, as the API renders it, block by block.
import { memo } from "preact/compat";
import { useState } from "preact/hooks";

import { words } from "../../words/common";
import { editorWords } from "../../words/documents/editor";
import { useDocument } from "./context";
import type { OpenDocument } from "./document";

export function MarkdownPane() {
  const { document } = useDocument();
  const [isCopied, setCopied] = useState(false);
  return (
    <section aria-labelledby="markdown" class="markdown-pane">
      <div class="actions">
        <h2 id="markdown">{editorWords.panes.markdown}</h2>
        <button
          type="button"
          class="quiet"
          onClick={async () => {
            await navigator.clipboard.writeText(markdown(document));
            setCopied(true);
          }}
        >
          {isCopied ? words.copied : words.copy}
        </button>
      </div>
      <pre role="region" tabIndex={0} aria-label={editorWords.markdown}>
        {document.order.value.map((id) => (
          <BlockMarkdown key={id} id={id} />
        ))}
      </pre>
    </section>
  );
}

/** The text of one block and, as between blocks, a blank line. */
const BlockMarkdown = memo(function BlockMarkdown({ id }: { id: string }) {
  const entry = useDocument().document.entry(id);
  const text = entry.isGone.value ? "" : (entry.state.value?.text ?? "");
  return text === "" ? null : <span>{`${text}\n\n`}</span>;
});

function markdown(document: OpenDocument): string {
  const entries = document.order.value.map((id) => document.entry(id));
  return entries
    .map((entry) => (entry.isGone.value ? "" : (entry.state.value?.text ?? "")))
    .filter(Boolean)
    .join("\n\n");
}
