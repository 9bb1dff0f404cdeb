// The label of a heading, by which texts refer to it.
import { useActions } from "../../parts/actions";
import { Failure } from "../../parts/failure";
import { formsWords } from "../../words/documents/forms";
import { useDocument } from "./context";
import type { Block } from "./types";

export function LabelField({ block }: { block: Block }) {
  const { edits } = useDocument();
  const { error, run } = useActions();
  return (
    <label>
      {formsWords.label}
      <input
        defaultValue={block.label ?? ""}
        maxLength={100}
        placeholder={formsWords.headingExample}
        onChange={(event) => {
          const label = event.currentTarget.value.trim() || null;
          void run(() => edits.label(block.id, label));
        }}
      />
      <Failure error={error} />
    </label>
  );
}
