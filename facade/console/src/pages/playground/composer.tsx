// The message that is written next.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import { DropArea, FileButton, UploadList, useUploads } from "../../parts/uploads";
import { Attachments } from "./attachments";
import type { Attachment, Turn, UserTurn } from "./conversation";
import { CopyCode } from "./copy_code";
import { keepPreview } from "./previews";
import { isRunning, stop } from "./run";

export function Composer({
  draft,
  isEditing,
  isWaiting,
  hasTurns,
  conversation,
  onSend,
  onCancel,
  onClear,
}: {
  /** What the message begins as; a new one replaces what was written. */
  draft: UserTurn;
  isEditing: boolean;
  /** Whether the model waits for results of tools first. */
  isWaiting: boolean;
  hasTurns: boolean;
  /** The turns before the message. */
  conversation: readonly Turn[];
  /** Sends the message; returns whether it was sent. */
  onSend: (turn: UserTurn) => boolean;
  onCancel: () => void;
  onClear: () => void;
}) {
  const text = useSignal(draft.text);
  const attachments = useSignal<Attachment[]>(draft.attachments);
  const field = useRef<HTMLTextAreaElement>(null);
  const uploads = useUploads((stored, file) => {
    keepPreview(stored.id, file);
    const added = { fileId: stored.id, name: file.name, type: file.type };
    attachments.value = [...attachments.value, added];
  });
  // Before the next key is handled, so that none is lost.
  useLayoutEffect(() => {
    text.value = draft.text;
    attachments.value = draft.attachments;
    if (isEditing) field.current?.focus();
  }, [draft]);

  const isUploading = uploads.list.some(({ error }) => error === undefined);
  const isEmpty = text.value.trim() === "" && attachments.value.length === 0;
  const mayNotSend = isEmpty || isUploading || isWaiting || isRunning.value;
  const written = (): UserTurn => ({
    role: "user",
    text: text.value,
    attachments: attachments.value,
  });

  function submit(): void {
    if (mayNotSend || !onSend(written())) return;
    text.value = "";
    attachments.value = [];
  }

  return (
    <DropArea onFiles={uploads.add}>
      <form
        class="composer"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <label>
          {isEditing ? "Message, edited" : "Message"}
          <textarea
            ref={field}
            rows={3}
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
            onPaste={(event) => {
              const files = Array.from(event.clipboardData?.files ?? []);
              if (files.length > 0) uploads.add(files);
            }}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              submit();
            }}
          />
        </label>
        <Attachments
          list={attachments.value}
          onRemove={({ fileId }) => {
            attachments.value = attachments.value.filter((each) => each.fileId !== fileId);
          }}
        />
        <UploadList uploads={uploads} />
        <div class="actions">
          {isRunning.value ? (
            <button type="button" class="danger" onClick={stop}>
              Stop
            </button>
          ) : (
            <button disabled={mayNotSend}>Send</button>
          )}
          <FileButton label="Attach files" onFiles={uploads.add} />
          <CopyCode turns={() => (isEmpty ? conversation : [...conversation, written()])} />
          {isEditing && (
            <button type="button" class="quiet" onClick={onCancel}>
              Cancel the edit
            </button>
          )}
          {hasTurns && !isEditing && (
            <button type="button" class="quiet" disabled={isRunning.value} onClick={onClear}>
              New conversation
            </button>
          )}
        </div>
        <p class="hint">
          {isWaiting
            ? "The model waits for the results of its calls."
            : "Enter sends, Shift and Enter begin a line. Files can be dropped here."}
        </p>
      </form>
    </DropArea>
  );
}
