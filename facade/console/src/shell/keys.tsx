// Keys that work on every page, and the list of all keys (?).
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { words } from "../words/common";
import { shellWords } from "../words/shell";
import { openPalette } from "./palette";

const text = shellWords.keys;

const isOpen = signal(false);

export function openKeys(): void {
  isOpen.value = true;
}

/** Listens to the keys of every page. */
export function useKeys(): void {
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
        // In texts of documents the same keys make a link.
        if ((event.target as HTMLElement).isContentEditable) return;
        event.preventDefault();
        openPalette();
      } else if (event.key === "?" && !isText(event.target)) {
        event.preventDefault();
        openKeys();
      }
    }
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}

function isText(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input, textarea, select"))
  );
}

export function KeyHelp() {
  if (!isOpen.value) return null;
  return <OpenKeyHelp />;
}

function OpenKeyHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      aria-label={text.title}
      onClose={() => {
        isOpen.value = false;
      }}
    >
      <strong>{text.title}</strong>
      <dl class="keys">
        {text.list.map(([key, effect]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{effect}</dd>
          </>
        ))}
      </dl>
      <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
        {words.close}
      </button>
    </dialog>
  );
}
