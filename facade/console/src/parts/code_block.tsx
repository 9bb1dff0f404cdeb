// A block of code: the name of its language, its text, and a button that copies it.
import { memo } from "preact/compat";
import { useEffect, useState } from "preact/hooks";

import { words } from "../words/common";
import { CopyButton } from "./copy";
import type { Token } from "./highlighting";
import { languageKey, languageName } from "./languages";

// Longer code is shown in one colour: its elements would hold up the page.
const MAX_HIGHLIGHTED = 20_000;
// Lines of long code are laid out in groups of so many, of which those out of sight are skipped.
const GROUP = 100;
const MAX_UNGROUPED = 5_000;

interface Highlighted {
  code: string;
  tokens: readonly Token[];
}

/** Shows code, highlighted once it is complete. */
export const CodeBlock = memo(function CodeBlock({
  code,
  language,
  isComplete,
}: {
  code: string;
  /** As the text calls it; "" for none. */
  language: string;
  isComplete: boolean;
}) {
  const tokens = useTokens(code, language, isComplete);
  return (
    <div class="code-block">
      <div class="bar">
        <span>{languageName(language)}</span>
        <CopyButton text={code} label={words.copy} name={words.code.it} />
      </div>
      <pre tabIndex={0}>
        <code>{tokens === undefined ? plain(code) : tokens.map(shown)}</code>
      </pre>
    </div>
  );
});

function useTokens(code: string, language: string, isComplete: boolean) {
  const [highlighted, setHighlighted] = useState<Highlighted>();
  const key = isComplete && code.length <= MAX_HIGHLIGHTED ? languageKey(language) : undefined;
  useEffect(() => {
    if (key === undefined) return;
    let isShown = true;
    import("./highlighting")
      .then(({ tokensOf }) => tokensOf(code, key))
      .then(
        (tokens) => {
          if (isShown) setHighlighted({ code, tokens });
        },
        // Without its colours code is as good.
        () => undefined,
      );
    return () => {
      isShown = false;
    };
  }, [code, key]);
  return key !== undefined && highlighted?.code === code ? highlighted.tokens : undefined;
}

function shown({ kind, text }: Token, index: number) {
  return kind === "" ? (
    text
  ) : (
    <span key={index} class={`token-${kind}`}>
      {text}
    </span>
  );
}

function plain(code: string) {
  if (code.length <= MAX_UNGROUPED) return code;
  const lines = code.split("\n");
  const groups = Array.from({ length: Math.ceil(lines.length / GROUP) }, (_, index) => {
    const isLast = (index + 1) * GROUP >= lines.length;
    return lines.slice(index * GROUP, (index + 1) * GROUP).join("\n") + (isLast ? "" : "\n");
  });
  return groups.map((text, index) => <Lines key={index} text={text} />);
}

const Lines = memo(function Lines({ text }: { text: string }) {
  return <span class="lines">{text}</span>;
});
