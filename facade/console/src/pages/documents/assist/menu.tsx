// Tasks for a model, in the tools of the selected block.
import { assistWords as text } from "../../../words/documents/assist";
import { useDocument } from "../context";
import type { TaskName } from "./tasks";

/** Tasks in a menu; those that need a text are left out where there is none. */
const IN_EMPTY: readonly TaskName[] = ["write", "continue"];
const ALL: readonly TaskName[] = ["improve", "shorten", "change", "sources", ...IN_EMPTY];

export function AssistantMenu({ isEmpty }: { isEmpty: boolean }) {
  const { assistant } = useDocument();
  return (
    <select
      aria-label={text.menu}
      value=""
      onChange={(event) => {
        const { value } = event.currentTarget;
        event.currentTarget.value = "";
        if (value) void assistant.begin(value as TaskName);
      }}
    >
      <option value="">{text.menu}</option>
      {(isEmpty ? IN_EMPTY : ALL).map((task) => (
        <option key={task} value={task}>
          {text.tasks[task]}
        </option>
      ))}
    </select>
  );
}
