// Files that go with a message.
import { chatWords } from "../../words/chat";
import { type Attachment, isImage } from "./conversation";
import { previewOf } from "./previews";

const text = chatWords.composer;

export function Attachments({
  list,
  onRemove,
}: {
  list: readonly Attachment[];
  onRemove?: (attachment: Attachment) => void;
}) {
  if (list.length === 0) return null;
  return (
    <ul class="attachments" aria-label={text.attachments}>
      {list.map((attachment) => {
        const preview = isImage(attachment) ? previewOf(attachment.fileId) : undefined;
        return (
          <li key={attachment.fileId}>
            {preview && <img src={preview} alt="" />}
            <span class="name">{attachment.name}</span>
            {onRemove && (
              <button type="button" class="quiet" onClick={() => onRemove(attachment)}>
                {text.removeAttachment}
                <span class="visually-hidden"> {attachment.name}</span>
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}
