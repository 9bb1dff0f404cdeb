// The parts that several types of blocks have beside their content: a caption, and the label by which
// texts refer to the block.
import { useState } from "preact/hooks";

import { formsWords as text } from "../../../words/documents/forms";
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
          <span aria-hidden="true">{text.caption}</span>
          <TextEditor leaves={block.caption ?? []} label={text.caption} holder={holder} />
        </div>
      )}
      <label>
        {text.label}
        <input
          value={label}
          maxLength={100}
          placeholder={text.labelExample}
          onInput={(event) => setLabel(event.currentTarget.value)}
        />
      </label>
    </>
  );
}
