// Text with its marks, links, formulas and citations.
import type { ComponentChild } from "preact";

import { safeAddress } from "../../../parts/links";
import { shortAuthors } from "../citations";
import { useDocument } from "../context";
import { type CitationItem, type Leaf, citationsOf, isSameCite } from "../types";
import { Formula } from "./formula";

export function Leaves({ leaves }: { leaves: Leaf[] }) {
  return (
    <>
      {leaves.map((leaf, place) => (
        <>
          <MarkedLeaf leaf={leaf} />
          {leaf.cite !== undefined && !isSameCite(leaf, following(leaves, place)) && (
            <Citations items={citationsOf(leaf)} />
          )}
        </>
      ))}
    </>
  );
}

/** The leaf after a place; notes do not interrupt a run of one citation. */
function following(leaves: Leaf[], place: number): Leaf {
  return leaves.slice(place + 1).find((leaf) => leaf.type !== "note") ?? { text: "" };
}

function MarkedLeaf({ leaf }: { leaf: Leaf }) {
  let shown: ComponentChild = content(leaf);
  if (leaf.bold) shown = <strong>{shown}</strong>;
  if (leaf.italic) shown = <em>{shown}</em>;
  if (leaf.textDecoration === "underline") shown = <u>{shown}</u>;
  if (leaf.textDecoration === "line-through") shown = <s>{shown}</s>;
  if (leaf.script === "super") shown = <sup>{shown}</sup>;
  if (leaf.script === "sub") shown = <sub>{shown}</sub>;
  if (leaf.color) {
    shown = (
      <span class="inked" style={{ "--ink": leaf.color }}>
        {shown}
      </span>
    );
  }
  return <>{shown}</>;
}

function content(leaf: Leaf): ComponentChild {
  switch (leaf.type) {
    case "latex":
      return leaf.form === "display" ? (
        <Formula tex={leaf.text} isBlock />
      ) : (
        <Formula tex={leaf.text} />
      );
    case "note":
      return (
        <small class="note" role="note">
          <Leaves leaves={leaf.children ?? []} />
        </small>
      );
    case "ref":
      return <Ref label={leaf.ref ?? ""} isNumber={leaf.form === "number"} />;
    case "inlinecode":
      return <Linked url={leaf.url}>{<code>{leaf.text}</code>}</Linked>;
    case "url":
      if (leaf.url?.startsWith("#")) return <Ref label={leaf.url.slice(1)} text={leaf.text} />;
      return <Linked url={leaf.url}>{leaf.text}</Linked>;
    default:
      return leaf.text;
  }
}

/** A link, if its address leads somewhere safe. */
function Linked({ url = "", children }: { url?: string | undefined; children: ComponentChild }) {
  const address = safeAddress(url);
  if (address === undefined) return <>{children}</>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** A reference to a block, which leads there. */
function Ref({ label, isNumber, text }: { label: string; isNumber?: boolean; text?: string }) {
  const shown = useDocument().document.labels.value[label];
  const missing = isNumber ? "?" : "??";
  return (
    <a class="cite" href={`#block-${label}`}>
      {text ?? (isNumber ? shown?.number : shown?.text) ?? missing}
    </a>
  );
}

export function Citations({ items }: { items: CitationItem[] }) {
  const [only] = items;
  if (items.length === 1 && only !== undefined && Object.keys(only).length === 1) {
    return <Citation id={only.id} />;
  }
  return (
    <>
      {only?.narrative && <Names id={only.id} />}
      {" ["}
      {items.map((item, place) => (
        <>
          {place > 0 && "; "}
          {item.prefix && `${item.prefix} `}
          <Citation id={item.id} isBare />
          {item.locator && `, ${item.locator}`}
          {item.suffix && `, ${item.suffix}`}
        </>
      ))}
      {"]"}
    </>
  );
}

/** The authors of a reference, in a sentence. */
function Names({ id }: { id: string }) {
  const reference = useDocument().document.references.value.find((one) => one.id === id);
  return <>{reference === undefined ? "" : shortAuthors(reference)}</>;
}

/** A citation; `isBare` leaves out the brackets that its style puts around it. */
function Citation({ id, isBare = false }: { id: string; isBare?: boolean }) {
  const { document, citations } = useDocument();
  const number = document.numbers.value.get(id);
  // A reference that came with the same change as the citation is there a moment later.
  const reference = document.references.value.find((one) => one.id === id);
  const name = citations.value.mark(number, reference);
  return (
    <a class="cite" href={`#reference-${number ?? 0}`}>
      {isBare ? name.replace(/^[[(]|[\])]$/g, "") : name}
    </a>
  );
}
