// A block on the page: shown, selected with its tools, or edited.
import { memo } from "preact/compat";
import { useEffect, useRef } from "preact/hooks";

import { BlockTools } from "./block_tools";
import { useDocument } from "./context";
import { dragged, dropTarget } from "./drag";
import { EditForm } from "./edit_form";
import { Content } from "./kinds/content";
import { HEADING_TYPES, NAMES } from "./types";

/** Shows a block. It renders anew when its own signals change, whatever becomes of the others. */
export const BlockFrame = memo(function BlockFrame({ id }: { id: string }) {
  const { document, edits } = useDocument();
  const entry = document.entry(id);
  const frame = useRef<HTMLDivElement>(null);
  const state = entry.state.value;
  const isEditing = entry.isEditing.value;
  const isSelected = entry.isSelected.value;
  useEffect(() => {
    // Subscribed here alone: the focus is wanted by one block, and changes no other.
    return document.wanted.subscribe((wanted) => {
      if (wanted !== id || frame.current === null) return;
      frame.current.focus();
      document.wanted.value = "";
    });
  }, []);
  if (state === undefined) return <div class="block unread" />;
  const name = NAMES[state.block.type] ?? state.block.type;
  return (
    <div
      ref={frame}
      class={`block of-${state.block.type}${isSelected ? " selected" : ""}${
        isIndexed(state.block.type, state.style) ? " indexed" : ""
      }${state.style["serial"] ? " serial" : ""}`}
      role="group"
      aria-label={name}
      data-block={id}
      tabIndex={isSelected ? 0 : -1}
      onFocusIn={() => document.select(id)}
      {...dropTarget(id, edits)}
      onDblClick={() => {
        entry.isEditing.value = true;
      }}
    >
      {!isEditing && (
        <span
          class="handle"
          draggable
          aria-hidden="true"
          title={
            HEADING_TYPES.includes(state.block.type)
              ? "Drag to move the section"
              : "Drag to move the block"
          }
          onDragStart={(event) => {
            dragged.value = id;
            event.dataTransfer?.setData("text/plain", state.text);
            if (frame.current) event.dataTransfer?.setDragImage(frame.current, 0, 0);
          }}
          onDragEnd={() => {
            dragged.value = "";
          }}
        />
      )}
      {isEditing ? (
        <EditForm entry={entry} state={state} />
      ) : (
        <div class="content">
          <Content state={state} />
        </div>
      )}
      {isSelected && !isEditing && <BlockTools entry={entry} block={state.block} />}
    </div>
  );
});

function isIndexed(type: string, style: Record<string, unknown>): boolean {
  return /^h[123]$/.test(type) && !style["isHideIndex"];
}
