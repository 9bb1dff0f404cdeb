// What the forms of all types of blocks have.
import { formsWords } from "../../../words/documents/forms";
import type { Block, BlockContent } from "../types";

export type Collect = () => BlockContent;

export interface FieldsProps {
  block: Block;
  /** Called whenever the fields are rendered, with the function that reads them. */
  provide: (collect: Collect) => void;
}

export function Remove({ name, onUse }: { name: string; onUse: () => void }) {
  return (
    <button type="button" class="danger" onClick={onUse}>
      {formsWords.remove}<span class="visually-hidden"> {name}</span>
    </button>
  );
}
