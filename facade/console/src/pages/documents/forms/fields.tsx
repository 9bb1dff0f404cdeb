// The form of each type of block. A form hands a function up that returns what the block is to hold.
import { useState } from "preact/hooks";

import { formsWords as text } from "../../../words/documents/forms";
import type { Author, Block, Institution } from "../types";
import { elementsOf, leavesOf } from "../types";
import { Formula } from "../kinds/formula";
import { type FieldsProps, Remove } from "./form";
import { PictureFields } from "./picture_fields";
import { type Holder, TextEditor, readLeaves } from "../prose/text_editor";
import { TableFields } from "./table_fields";

export function Fields(props: FieldsProps) {
  switch (props.block.type) {
    case "equation":
      return <EquationFields {...props} />;
    case "code":
      return <CodeFields {...props} />;
    case "table":
      return <TableFields {...props} />;
    case "image":
      return <PictureFields {...props} />;
    case "author":
      return <AuthorFields {...props} />;
    case "label":
      return <LabelFields {...props} />;
    default:
      return null;
  }
}

/** Return whether a block's form has texts with marks. */
export function hasMarks(block: Block): boolean {
  return ["table", "label"].includes(block.type);
}

function EquationFields({ block, provide }: FieldsProps) {
  const [equation, setEquation] = useState(block.equation ?? "");
  provide(() => ({ equation }));
  return (
    <>
      <label>
        {text.latex}
        <textarea
          class="code"
          rows={4}
          value={equation}
          ref={focusOnce}
          onInput={(event) => setEquation(event.currentTarget.value)}
        />
      </label>
      <Formula tex={equation} isBlock />
    </>
  );
}

function CodeFields({ block, provide }: FieldsProps) {
  const [code, setCode] = useState(block.code ?? "");
  const [language, setLanguage] = useState(block.language ?? "");
  provide(() => ({ code, language }));
  return (
    <>
      <label>
        {text.language}
        <input value={language} onInput={(event) => setLanguage(event.currentTarget.value)} />
      </label>
      <label>
        {text.code}
        <textarea
          class="code"
          rows={8}
          value={code}
          ref={focusOnce}
          onInput={(event) => setCode(event.currentTarget.value)}
        />
      </label>
    </>
  );
}

interface LabelRow {
  key: number;
  id?: string;
  name: string;
  item: Block | undefined;
  holder: Holder;
}

function LabelFields({ block, provide }: FieldsProps) {
  const [rows, setRows] = useState<LabelRow[]>(() =>
    elementsOf(block).map((item, key) => ({
      key,
      id: item.id,
      name: item.name ?? "",
      item,
      holder: { view: undefined },
    })),
  );
  provide(() => ({
    children: rows.map(({ item, name, holder }) => ({
      ...item,
      type: "label-item",
      name,
      children: readLeaves(holder),
    })),
  }));
  function add(): void {
    const key = Math.max(-1, ...rows.map((row) => row.key)) + 1;
    setRows([...rows, { key, name: "", item: undefined, holder: { view: undefined } }]);
  }
  return (
    <>
      {rows.map((row, place) => (
        <div key={row.key} class="row">
          <input
            aria-label={text.items.name(place + 1)}
            value={row.name}
            onInput={(event) => {
              const name = event.currentTarget.value;
              setRows(rows.map((one) => (one === row ? { ...one, name } : one)));
            }}
          />
          <TextEditor
            leaves={row.item ? leavesOf(row.item) : []}
            label={text.items.text(place + 1)}
            holder={row.holder}
          />
          <Remove name={text.items.item(place + 1)} onUse={() => setRows(rows.filter((one) => one !== row))} />
        </div>
      ))}
      <button type="button" class="quiet" onClick={add}>
        {text.items.add}
      </button>
    </>
  );
}

function AuthorFields({ block, provide }: FieldsProps) {
  // Ids are places from 1, so that removing one changes those of the others: institutions are
  // named by their objects meanwhile.
  const [places, setPlaces] = useState<Institution[]>(block.institution ?? []);
  const [authors, setAuthors] = useState<(Author & { at: Institution | undefined })[]>(() =>
    (block.author ?? []).map((one) => ({
      ...one,
      at: block.institution?.find((place) => place.id === one.institutionId),
    })),
  );
  const named = new Map((block.institution ?? []).map((one) => [one.id ?? 0, one]));
  provide(() => ({
    institution: places.map(({ name }, place) => ({ id: place + 1, name })),
    author: authors.map(({ name, isStar, at, orcid, email, institutionIds = [] }, place) => ({
      id: place + 1,
      name,
      isStar: isStar ?? false,
      // The first institution is chosen here; further ones stay.
      institutionIds: [
        ...new Set([at, ...institutionIds.slice(1).map((id) => named.get(id))]),
      ].flatMap((one) => (one !== undefined && places.includes(one) ? places.indexOf(one) + 1 : [])),
      ...(orcid === undefined ? {} : { orcid }),
      ...(email === undefined ? {} : { email }),
    })),
  }));
  return (
    <>
      {authors.map((author, number) => {
        const change = (changes: Partial<Author & { at: Institution | undefined }>) =>
          setAuthors(authors.map((one) => (one === author ? { ...one, ...changes } : one)));
        return (
          <div key={number} class="row">
            <input
              aria-label={text.authors.author(number + 1)}
              value={author.name}
              onInput={(event) => change({ name: event.currentTarget.value })}
            />
            <select
              aria-label={text.authors.institutionOf(number + 1)}
              value={author.at === undefined ? "" : String(places.indexOf(author.at))}
              onChange={(event) => {
                const { value } = event.currentTarget;
                change({ at: value === "" ? undefined : places[Number(value)] });
              }}
            >
              <option value="">{text.authors.noInstitution}</option>
              {places.map((place, at) => (
                <option key={at} value={String(at)}>
                  {place.name || text.authors.institution(at + 1)}
                </option>
              ))}
            </select>
            <label class="check">
              <input
                type="checkbox"
                checked={author.isStar ?? false}
                onChange={(event) => change({ isStar: event.currentTarget.checked })}
              />
              {text.authors.star}
            </label>
            <Remove
              name={text.authors.author(number + 1)}
              onUse={() => setAuthors(authors.filter((one) => one !== author))}
            />
          </div>
        );
      })}
      {places.map((place, number) => (
        <div key={number} class="row">
          <input
            aria-label={text.authors.institution(number + 1)}
            value={place.name}
            onInput={(event) => {
              const changed = { ...place, name: event.currentTarget.value };
              setPlaces(places.map((one) => (one === place ? changed : one)));
              setAuthors(authors.map((one) => (one.at === place ? { ...one, at: changed } : one)));
            }}
          />
          <Remove
            name={text.authors.institution(number + 1)}
            onUse={() => {
              setPlaces(places.filter((one) => one !== place));
              setAuthors(authors.map((one) => (one.at === place ? { ...one, at: undefined } : one)));
            }}
          />
        </div>
      ))}
      <div class="actions">
        <button
          type="button"
          class="quiet"
          onClick={() => setAuthors([...authors, { name: "", at: undefined }])}
        >
          {text.authors.add}
        </button>
        <button type="button" class="quiet" onClick={() => setPlaces([...places, { name: "" }])}>
          {text.authors.addInstitution}
        </button>
      </div>
    </>
  );
}

const focused = new WeakSet<HTMLElement>();

function focusOnce(element: HTMLElement | null): void {
  if (element === null || focused.has(element)) return;
  focused.add(element);
  element.focus();
}

