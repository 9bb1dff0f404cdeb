// Uploads that are in progress: their list, and ways to choose files.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { words } from "../words/common";
import { Failure } from "./failure";
import { type StoredFile, type UploadOptions, upload } from "./upload";

/** An upload that waits, is sent or failed; stored ones leave the list. */
export interface Upload {
  id: number;
  file: File;
  /** The part that has been sent, 0 to 1. */
  sent: number;
  error?: unknown;
}

export interface Uploads {
  list: readonly Upload[];
  add: (files: Iterable<File>) => void;
  /** Abort an upload, or remove a failed one from the list. */
  remove: (id: number) => void;
}

let lastId = 0;

/** Upload files one after the other; those that are left when the page goes are aborted. */
export function useUploads(
  onStored: (stored: StoredFile, file: File) => void,
  options: Pick<UploadOptions, "purpose" | "expiresAfterS"> = {},
): Uploads {
  const [list, setList] = useState<readonly Upload[]>([]);
  const running = useRef(new Map<number, AbortController>()).current;
  const last = useRef<Promise<void>>(Promise.resolve());
  const latest = useRef({ onStored, options });
  latest.current = { onStored, options };
  useEffect(() => () => running.forEach((controller) => controller.abort()), []);

  function change(id: number, changes: Partial<Upload>): void {
    setList((items) => items.map((item) => (item.id === id ? { ...item, ...changes } : item)));
  }

  function remove(id: number): void {
    running.get(id)?.abort();
    setList((items) => items.filter((item) => item.id !== id));
  }

  async function send({ id, file }: Upload, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    try {
      const onProgress = (sent: number): void => change(id, { sent });
      const stored = await upload(file, { ...latest.current.options, onProgress, signal });
      remove(id);
      latest.current.onStored(stored, file);
    } catch (error) {
      if (!signal.aborted) change(id, { error });
    } finally {
      running.delete(id);
    }
  }

  function add(files: Iterable<File>): void {
    const added = Array.from(files, (file) => ({ id: ++lastId, file, sent: 0 }));
    setList((items) => [...items, ...added]);
    for (const item of added) {
      const controller = new AbortController();
      running.set(item.id, controller);
      last.current = last.current.then(() => send(item, controller.signal));
    }
  }

  return { list, add, remove };
}

/** The uploads in progress with their bars, and why others failed. */
export function UploadList({ uploads }: { uploads: Uploads }) {
  if (uploads.list.length === 0) return null;
  return (
    <ul class="uploads" aria-label={words.uploads.title}>
      {uploads.list.map(({ id, file, sent, error }) => (
        <li key={id}>
          <span class="name">{file.name}</span>
          {error === undefined ? (
            <progress value={sent} max={1} aria-label={words.uploads.of(file.name)} />
          ) : (
            <Failure error={error} />
          )}
          <button type="button" class="quiet" onClick={() => uploads.remove(id)}>
            {error === undefined ? words.cancel : words.uploads.dismiss}
            <span class="visually-hidden"> {file.name}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** A button that opens the browser's dialog for files. */
export function FileButton({
  label,
  accept,
  onFiles,
}: {
  label: string;
  accept?: string;
  onFiles: (files: File[]) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="quiet" onClick={() => input.current?.click()}>
        {label}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        accept={accept}
        aria-label={label}
        onChange={(event) => {
          onFiles(Array.from(event.currentTarget.files ?? []));
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

/** An area onto which files can be dropped. */
export function DropArea({
  onFiles,
  children,
}: {
  onFiles: (files: File[]) => void;
  children: ComponentChildren;
}) {
  const [isOver, setOver] = useState(false);
  return (
    <div
      class={isOver ? "drop-area over" : "drop-area"}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        setOver(false);
        const files = Array.from(event.dataTransfer?.files ?? []);
        if (files.length === 0) return;
        event.preventDefault();
        onFiles(files);
      }}
    >
      {children}
    </div>
  );
}
