// A file in the grid.
import { useEffect, useRef } from "preact/hooks";

import { useActions } from "../../parts/actions";
import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { size, when } from "../../parts/formats";
import { save } from "../../parts/save";
import { filesWords } from "../../words/files";
import { Preview } from "./preview";
import { type StoreFile, contentOf } from "./store";
import { Thumbnail } from "./thumbnail";

const text = filesWords;

export function Entry({
  file,
  isShown,
  isChosen,
  onChoose,
  onShow,
  onDelete,
}: {
  file: StoreFile;
  isShown: boolean;
  isChosen: boolean;
  onChoose: (isChosen: boolean) => void;
  onShow: () => void;
  onDelete: () => Promise<void>;
}) {
  const { error, run } = useActions();
  const card = useRef<HTMLElement>(null);
  // With its preview, a file moves to a row of its own.
  useEffect(() => {
    if (isShown) card.current?.scrollIntoView({ block: "start" });
  }, [isShown]);
  return (
    <article aria-label={file.filename} ref={card}>
      <div class="file-head">
        <input
          type="checkbox"
          checked={isChosen}
          aria-label={text.choose(file.filename)}
          onChange={(event) => onChoose(event.currentTarget.checked)}
        />
        <h2 title={file.filename}>{file.filename}</h2>
      </div>
      {!isShown && <Thumbnail file={file} />}
      <p class="hint">
        {size(file.size_bytes)} · <span title={file.mime_type}>{text.type(file.mime_type)}</span>
      </p>
      <p class="hint">
        {when(file.created_at)} · {text.expires(when(file.expires_at))}
      </p>
      <p class="hint">
        <code>{file.id}</code>
      </p>
      <div class="actions">
        <button type="button" class="quiet" aria-expanded={isShown} onClick={onShow}>
          {text.preview}
          <span class="visually-hidden"> {file.filename}</span>
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => void run(async () => save(await contentOf(file), file.filename))}
        >
          {text.download}
          <span class="visually-hidden"> {file.filename}</span>
        </button>
        <ConfirmButton
          label={text.remove}
          name={file.filename}
          question={text.removeQuestion(file.filename)}
          onConfirm={onDelete}
        />
      </div>
      <Failure error={error} />
      {isShown && <Preview file={file} />}
    </article>
  );
}
