import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { size, when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import { save } from "../../parts/save";
import { useTitle } from "../../parts/title";
import { DropArea, FileButton, UploadList, useUploads } from "../../parts/uploads";
import { Preview } from "./preview";
import { type StoreFile, contentOf, deleteFile, getStorage, listFiles } from "./store";

export default function Files() {
  useTitle("Files");
  const files = usePaged(listFiles, []);
  const storage = useLoaded(getStorage, []);
  const [shown, setShown] = useState("");

  function reload(): void {
    files.reload();
    storage.reload();
  }

  const uploads = useUploads(reload);
  return (
    <DropArea onFiles={uploads.add}>
      <h1>Files</h1>
      {storage.data && <Quota {...storage.data} />}
      <p class="actions">
        <FileButton label="Upload files" onFiles={uploads.add} />
        <button type="button" class="quiet" onClick={reload}>
          Refresh
        </button>
      </p>
      <UploadList uploads={uploads} />
      <Failure error={files.error ?? storage.error} />
      {files.items.length === 0 && files.isLoaded && (
        <Empty title="There are no files yet">
          <p>Drop some onto this page, or choose “Upload files”. Requests name them by their id.</p>
        </Empty>
      )}
      <ul class="cards" aria-label="Files">
        {files.items.map((file) => (
          <li key={file.id}>
            <Entry
              file={file}
              isShown={shown === file.id}
              onShow={() => setShown((id) => (id === file.id ? "" : file.id))}
              onDelete={async () => {
                await deleteFile(file.id);
                reload();
              }}
            />
          </li>
        ))}
      </ul>
      <MoreButton list={files} label="More files" />
    </DropArea>
  );
}

function Quota({ files, used_bytes, quota_bytes }: { files: number; used_bytes: number; quota_bytes: number }) {
  return (
    <p class="quota">
      <label>
        {files === 1 ? "1 file takes" : `${files} files take`} up {size(used_bytes)} of{" "}
        {size(quota_bytes)}
        <meter value={used_bytes} max={quota_bytes} high={quota_bytes * 0.9} />
      </label>
    </p>
  );
}

function Entry({
  file,
  isShown,
  onShow,
  onDelete,
}: {
  file: StoreFile;
  isShown: boolean;
  onShow: () => void;
  onDelete: () => Promise<void>;
}) {
  const [error, setError] = useState<unknown>();

  async function download(): Promise<void> {
    setError(undefined);
    try {
      save(await contentOf(file), file.filename);
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <article aria-label={file.filename}>
      <h2>{file.filename}</h2>
      <p class="hint">
        {size(file.size_bytes)} · {file.mime_type} · {when(file.created_at)} · expires{" "}
        {when(file.expires_at)}
      </p>
      <p class="hint">
        <code>{file.id}</code>
      </p>
      <div class="actions">
        <button type="button" class="quiet" aria-expanded={isShown} onClick={onShow}>
          Preview
          <span class="visually-hidden"> {file.filename}</span>
        </button>
        <button type="button" class="quiet" onClick={download}>
          Download
          <span class="visually-hidden"> {file.filename}</span>
        </button>
        <ConfirmButton
          label="Delete"
          name={file.filename}
          question={`Delete ${file.filename}? Requests that name it will fail.`}
          onConfirm={onDelete}
        />
      </div>
      <Failure error={error} />
      {isShown && <Preview file={file} />}
    </article>
  );
}
