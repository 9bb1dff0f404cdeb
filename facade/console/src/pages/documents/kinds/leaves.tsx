// Text with its marks, links, formulas and citations.
import type { ComponentChild } from "preact";

import { safeAddress } from "../../../parts/links";
import { useDocument } from "../context";
import type { Leaf } from "../types";
import { Formula } from "./formula";

export function Leaves({ leaves }: { leaves: Leaf[] }) {
  return (
    <>
      {leaves.map((leaf, place) => (
        <>
          <MarkedLeaf leaf={leaf} />
          {leaf.cite !== undefined && leaf.cite !== leaves[place + 1]?.cite && (
            <Citation id={leaf.cite} />
          )}
        </>
      ))}
    </>
  );
}

function MarkedLeaf({ leaf }: { leaf: Leaf }) {
  let shown: ComponentChild = content(leaf);
  if (leaf.bold) shown = <strong>{shown}</strong>;
  if (leaf.italic) shown = <em>{shown}</em>;
  if (leaf.textDecoration === "underline") shown = <u>{shown}</u>;
  if (leaf.textDecoration === "line-through") shown = <s>{shown}</s>;
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
      return <Formula tex={leaf.text} />;
    case "inlinecode":
      return <code>{leaf.text}</code>;
    case "url": {
      const address = safeAddress(leaf.url ?? "");
      if (address === undefined) return leaf.text;
      return (
        <a href={address} target="_blank" rel="noopener noreferrer">
          {leaf.text}
        </a>
      );
    }
    default:
      return leaf.text;
  }
}

function Citation({ id }: { id: string }) {
  const { document, citations } = useDocument();
  const number = document.numbers.value.get(id);
  // A reference that came with the same change as the citation is there a moment later.
  const reference = document.references.value.find((one) => one.id === id);
  const name = citations.value.mark(number, reference);
  return (
    <a class="cite" href={`#reference-${number ?? 0}`}>
      {name}
    </a>
  );
}
