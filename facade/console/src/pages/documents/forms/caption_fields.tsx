// The parts that several types of blocks have beside their content: a caption, and the label by which
// texts refer to the block.
import { useState } from "preact/hooks";

import { CAPTIONED_TYPES, type BlockContent, LABELLED_TYPES } from "../types";
import type { FieldsProps } from "./form";
import { type Holder, TextEditor, readLeaves } from "../prose/text_editor";

export function CaptionFields({ block, provide }: FieldsProps) {
  const [label, setLabel] = useState(block.label ?? "");
  const [holder] = useState<Holder>({ view: undefined });
  const hasLabel = LABELLED_TYPES.includes(block.type);
  const hasCaption = CAPTIONED_TYPES.includes(block.type);
  provide(() => {
    const content: BlockContent = {};
    if (hasLabel) content.label = label.trim() || null;
    if (hasCaption) {
      const caption = readLeaves(holder);
      content.caption = caption.length > 0 ? caption : null;
    }
    return content;
  });
  if (!hasLabel) return null;
  return (
    <>
      {hasCaption && (
        <div class="field">
          <span aria-hidden="true">Caption</span>
          <TextEditor leaves={block.caption ?? []} label="Caption" holder={holder} />
        </div>
      )}
      <label>
        Label, by which texts refer to it
        <input
          value={label}
          maxLength={100}
          placeholder="fig-tides"
          onInput={(event) => setLabel(event.currentTarget.value)}
        />
      </label>
    </>
  );
}
