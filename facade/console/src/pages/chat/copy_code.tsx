// The next request as a program.
import { useRef, useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { chatWords } from "../../words/chat";
import { words } from "../../words/common";
import { type Language, program } from "./code";
import type { Turn } from "./conversation";
import { settings } from "./store";

const text = chatWords.code;

const LANGUAGES: readonly Language[] = ["curl", "Python", "TypeScript"];

/** A button that shows a request as a program; `turns` returns its conversation. */
export function CopyCode({ turns }: { turns: () => readonly Turn[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [language, setLanguage] = useState<Language>("curl");
  const [shown, setShown] = useState<{ text: string } | { error: unknown }>({ text: "" });
  const [isCopied, setCopied] = useState(false);

  function show(chosen: Language): void {
    setLanguage(chosen);
    setCopied(false);
    try {
      setShown({ text: program(chosen, settings.value, turns(), location.origin) });
    } catch (error) {
      setShown({ error });
    }
  }

  return (
    <>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          show(language);
          dialog.current?.showModal();
        }}
      >
        {text.act}
      </button>
      <dialog ref={dialog} class="code-dialog" aria-label={text.title}>
        <div class="actions">
          {LANGUAGES.map((name) => (
            <button
              key={name}
              type="button"
              class={name === language ? "" : "quiet"}
              aria-pressed={name === language}
              onClick={() => show(name)}
            >
              {name}
            </button>
          ))}
        </div>
        {"error" in shown ? (
          <Failure error={shown.error} />
        ) : (
          <pre tabIndex={0}>{shown.text}</pre>
        )}
        <p class="hint">
          {text.key}
          <code>GATEWAY_KEY</code>.
        </p>
        <div class="actions">
          {"text" in shown && "clipboard" in navigator && (
            <button
              type="button"
              onClick={() =>
                void navigator.clipboard.writeText(shown.text).then(() => setCopied(true))
              }
            >
              {isCopied ? words.copied : words.copy}
            </button>
          )}
          <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
            {words.close}
          </button>
        </div>
      </dialog>
    </>
  );
}
