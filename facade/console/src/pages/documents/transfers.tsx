// The document in other formats: menus to export and to import it.
import { useRef, useState } from "preact/hooks";

import { send } from "../../api/client";
import { save } from "../../parts/save";
import { upload } from "../../parts/upload";
import { editsWords } from "../../words/documents/edits";
import { transfersWords as text } from "../../words/documents/transfers";
import { useDocument } from "./context";
import type { Lost } from "./types";

interface Exported {
  fileId: string;
  filename: string;
  lost: Lost[];
}

interface Imported {
  ids: string[];
  referenceIds: string[];
  lost: Lost[];
}

interface Props {
  onLost: (lost: readonly Lost[]) => void;
  /** Runs an action, and shows its error. */
  onRun: (act: () => Promise<void>) => Promise<void>;
}

// The formats of files to import, by the ends of their names. Archives are projects in LaTeX.
const SUFFIXES: Record<string, string> = {
  md: "markdown",
  markdown: "markdown",
  docx: "docx",
  tex: "latex",
  html: "html",
  htm: "html",
  xml: "jats",
  zip: "latex",
};
// What is sent as a file.
const PACKED = new Set(["docx", "zip"]);

export function ExportMenu({ onLost, onRun }: Props) {
  const { document } = useDocument();
  const [isBusy, setBusy] = useState(false);

  async function exportAs(format: string): Promise<void> {
    setBusy(true);
    onLost([]);
    await onRun(async () => {
      const body = () => ({ format, as: "file" });
      const exported = await document.session.call<Exported>("doc/export", body);
      const path = `/v1/files/${exported.fileId}/content`;
      save(await (await send(path)).blob(), exported.filename);
      onLost(exported.lost);
    });
    setBusy(false);
  }

  return (
    <select
      aria-label={text.export}
      value=""
      disabled={isBusy || !document.isOpen.value}
      onChange={(event) => {
        const { value } = event.currentTarget;
        event.currentTarget.value = "";
        if (value) void exportAs(value);
      }}
    >
      <option value="">{isBusy ? text.exporting : text.export}</option>
      {Object.entries(text.formats).map(([format, name]) => (
        <option key={format} value={format}>
          {name}
        </option>
      ))}
    </select>
  );
}

export function ImportButton({ onLost, onRun }: Props) {
  const { document, edits } = useDocument();
  const input = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);

  async function importFile(file: File): Promise<void> {
    setBusy(true);
    onLost([]);
    await onRun(async () => {
      const suffix = file.name.split(".").at(-1)?.toLowerCase() ?? "";
      const format = SUFFIXES[suffix];
      if (format === undefined) {
        throw new Error(text.unknownFormat);
      }
      const source =
        PACKED.has(suffix) ? { fileId: (await upload(file)).id } : { text: await file.text() };
      const body = () => ({ format, ...source });
      const imported = await document.session.call<Imported>("doc/import", body);
      if (imported.ids.length + imported.referenceIds.length > 0) edits.made(editsWords.names.import);
      onLost(imported.lost);
      await document.refresh();
    });
    setBusy(false);
  }

  return (
    <>
      <button
        type="button"
        class="quiet"
        disabled={isBusy || !document.isOpen.value}
        onClick={() => input.current?.click()}
      >
        {isBusy ? text.importing : text.import}
      </button>
      <input
        ref={input}
        type="file"
        hidden
        aria-label={text.file}
        accept={Object.keys(SUFFIXES)
          .map((suffix) => `.${suffix}`)
          .join(",")}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file) void importFile(file);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

export function LostList({ lost, onClose }: { lost: readonly Lost[]; onClose: () => void }) {
  if (lost.length === 0) return null;
  return (
    <section class="hint" role="status" aria-label={text.lost}>
      <p>
        {text.lostHint}{" "}
        <button type="button" class="quiet" onClick={onClose}>
          {text.hide}
        </button>
      </p>
      <ul>
        {lost.slice(0, 20).map((one, index) => (
          <li key={index}>
            {one.place}: {one.reason}
          </li>
        ))}
        {lost.length > 20 && <li>{text.more(lost.length - 20)}</li>}
      </ul>
    </section>
  );
}
