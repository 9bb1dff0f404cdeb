// The list of references: the cited ones by their numbers, then the others.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { safeAddress } from "../../parts/links";
import { referencesWords } from "../../words/documents/references";
import { words } from "../../words/common";
import { CITATION_STYLES, text, title } from "./citations";
import { useDocument } from "./context";
import type { Reference } from "./types";

const FIELDS = Object.entries(referencesWords.fields);

export function References({
  style,
  onStyle,
}: {
  style: string;
  onStyle: (style: string) => void;
}) {
  const { document, edits } = useDocument();
  const [editing, setEditing] = useState<string>();
  const numbers = document.numbers.value;
  const sorted = [...document.references.value].sort(
    (one, other) => (numbers.get(one.id) ?? Infinity) - (numbers.get(other.id) ?? Infinity) || 0,
  );
  return (
    <section aria-labelledby="references" class="references">
      <h2 id="references">{referencesWords.title}</h2>
      <div class="actions">
        <label class="inline">
          {referencesWords.style}
          <select value={style} onChange={(event) => onStyle(event.currentTarget.value)}>
            {Object.entries(CITATION_STYLES).map(([key, { name }]) => (
              <option key={key} value={key}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="quiet" onClick={() => setEditing("")}>
          {referencesWords.add}
        </button>
      </div>
      {editing === "" && (
        <ReferenceForm
          label={referencesWords.formOfNew}
          onSave={async (fields) => {
            await edits.addReference(fields as Omit<Reference, "id">);
            setEditing(undefined);
          }}
          onCancel={() => setEditing(undefined)}
        />
      )}
      {sorted.length === 0 && editing === undefined && (
        <p class="hint">{referencesWords.none}</p>
      )}
      <ol>
        {sorted.map((reference) => (
          <li key={reference.id} id={`reference-${numbers.get(reference.id) ?? reference.id}`}>
            {editing === reference.id ? (
              <ReferenceForm
                label={referencesWords.form}
                reference={reference}
                onSave={async (fields) => {
                  await edits.updateReference({ ...fields, id: reference.id });
                  setEditing(undefined);
                }}
                onCancel={() => setEditing(undefined)}
              />
            ) : (
              <Entry
                reference={reference}
                number={numbers.get(reference.id)}
                style={style}
                onEdit={() => setEditing(reference.id)}
                onDelete={() => edits.deleteReference(reference.id)}
              />
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Entry({
  reference,
  number,
  style,
  onEdit,
  onDelete,
}: {
  reference: Reference;
  number: number | undefined;
  style: string;
  onEdit: () => void;
  onDelete: () => Promise<void>;
}) {
  const doi = text(reference["doi"]);
  const links = [doi && `https://doi.org/${doi}`, text(reference["url"])]
    .map((address) => safeAddress(address))
    .filter((address) => address !== undefined);
  return (
    <>
      <span class="number">{number === undefined ? referencesWords.notCited : `[${number}]`}</span>{" "}
      {CITATION_STYLES[style]?.entry(reference) || title(reference)}{" "}
      {links.map((address) => (
        <>
          <a key={address} href={address} target="_blank" rel="noopener noreferrer">
            {address}
          </a>{" "}
        </>
      ))}
      <span class="actions">
        <button type="button" class="quiet" onClick={onEdit}>
          {referencesWords.edit}<span class="visually-hidden"> {title(reference)}</span>
        </button>
        <ConfirmButton
          label={referencesWords.remove}
          name={title(reference)}
          question={referencesWords.removeQuestion(title(reference))}
          onConfirm={onDelete}
        />
      </span>
    </>
  );
}

function ReferenceForm({
  label,
  reference,
  onSave,
  onCancel,
}: {
  label: string;
  reference?: Reference;
  onSave: (fields: Record<string, string | string[] | null>) => Promise<void>;
  onCancel: () => void;
}) {
  const [error, setError] = useState<unknown>();

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const entered = new FormData(event.currentTarget as HTMLFormElement);
    const fields: Record<string, string | string[] | null> = {};
    for (const [name] of FIELDS) {
      const value = String(entered.get(name) ?? "").trim();
      if (value !== "") fields[name] = name === "author" ? people(value) : value;
      // What is emptied is taken away.
      else if (reference?.[name] !== undefined) fields[name] = null;
    }
    try {
      await onSave(fields);
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <form class="reference" aria-label={label} onSubmit={(event) => void submit(event)}>
      {FIELDS.map(([name, shown]) => (
        <label key={name}>
          {shown}
          <input name={name} defaultValue={listed(reference?.[name])} />
        </label>
      ))}
      <Failure error={error} />
      <div class="actions">
        <button type="submit">{referencesWords.save}</button>
        <button type="button" class="quiet" onClick={onCancel}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}

function people(value: string): string[] {
  return value
    .split(";")
    .map((name) => name.trim())
    .filter(Boolean);
}

function listed(value: string | string[] | undefined): string {
  return Array.isArray(value) ? value.join("; ") : (value ?? "");
}
