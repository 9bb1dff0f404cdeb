// The caller's files: a grid that is searched, sorted, and acted on one by one or several at once.
import { useEffect, useState } from "preact/hooks";

import { useActions } from "../../parts/actions";
import { ConfirmButton } from "../../parts/confirm";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { size } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import { save } from "../../parts/save";
import { useTitle } from "../../parts/title";
import { DropArea, FileButton, UploadList, useUploads } from "../../parts/uploads";
import { words } from "../../words/common";
import { filesWords } from "../../words/files";
import { Entry } from "./entry";
import { ORDERS, type Order, isOrder, shownFiles } from "./order";
import { type StoreFile, contentOf, deleteFile, getStorage, listFiles } from "./store";

const text = filesWords;

export default function Files() {
  useTitle(text.title);
  const files = usePaged(listFiles, []);
  const storage = useLoaded(getStorage, []);
  const [shown, setShown] = useState("");
  const [query, setQuery] = useState("");
  const [order, setOrder] = useState<Order>("newest");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const needsAll = query !== "" || order !== "newest";
  // Only the whole list can be searched and sorted.
  useEffect(() => {
    if (needsAll && !files.isLoading) files.more?.();
  }, [needsAll, files.isLoading, files.more !== undefined]);

  function reload(): void {
    setChosen(new Set());
    files.reload();
    storage.reload();
  }

  const uploads = useUploads(reload);
  const listed = shownFiles(files.items, query, order);
  const selected = listed.filter(({ id }) => chosen.has(id));
  return (
    <DropArea onFiles={uploads.add}>
      <h1>{text.title}</h1>
      {storage.data && <Quota {...storage.data} />}
      <div class="actions">
        <FileButton label={text.upload} onFiles={uploads.add} />
        <button type="button" class="quiet" onClick={reload}>
          {words.refresh}
        </button>
        <input
          type="search"
          aria-label={text.search}
          placeholder={text.search}
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
        <label class="inline">
          {text.sort}
          <select
            value={order}
            onChange={({ currentTarget: { value } }) => {
              if (isOrder(value)) setOrder(value);
            }}
          >
            {ORDERS.map((one) => (
              <option key={one} value={one}>
                {text.orders[one]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <UploadList uploads={uploads} />
      <Failure error={files.error ?? storage.error} />
      {files.isLoaded && files.items.length === 0 && (
        <Empty title={text.none}>
          <p>{text.noneHint}</p>
        </Empty>
      )}
      {files.items.length > 0 && listed.length === 0 && !files.isLoading && (
        <Empty title={text.noneNamed(query)} />
      )}
      {listed.length > 0 && (
        <Selection
          listed={listed}
          selected={selected}
          onChoose={(some) => setChosen(new Set(some.map(({ id }) => id)))}
          onDeleted={reload}
        />
      )}
      <ul class="cards grid" aria-label={text.title}>
        {listed.map((file) => (
          <li key={file.id} class={shown === file.id ? "wide" : ""}>
            <Entry
              file={file}
              isShown={shown === file.id}
              isChosen={chosen.has(file.id)}
              onChoose={(isChosen) =>
                setChosen((before) => {
                  const after = new Set(before);
                  if (isChosen) after.add(file.id);
                  else after.delete(file.id);
                  return after;
                })
              }
              onShow={() => setShown((id) => (id === file.id ? "" : file.id))}
              onDelete={async () => {
                await deleteFile(file.id);
                reload();
              }}
            />
          </li>
        ))}
      </ul>
      {!needsAll && <MoreButton list={files} label={text.more} />}
    </DropArea>
  );
}

function Quota({
  files,
  used_bytes,
  quota_bytes,
}: {
  files: number;
  used_bytes: number;
  quota_bytes: number;
}) {
  return (
    <p class="quota">
      <label>
        {text.quota(files, size(used_bytes), size(quota_bytes))}
        <meter value={used_bytes} max={quota_bytes} high={quota_bytes * 0.9} />
      </label>
    </p>
  );
}

/** What can be done with several files at once. */
function Selection({
  listed,
  selected,
  onChoose,
  onDeleted,
}: {
  listed: readonly StoreFile[];
  selected: readonly StoreFile[];
  onChoose: (files: readonly StoreFile[]) => void;
  onDeleted: () => void;
}) {
  const { error, run } = useActions();
  const isAll = selected.length === listed.length;
  return (
    <div class="selection">
      <div class="actions">
        <label class="inline">
          <input
            type="checkbox"
            checked={isAll}
            onChange={() => onChoose(isAll ? [] : listed)}
          />
          {selected.length === 0 ? text.chooseAll : text.chosen(selected.length)}
        </label>
        {selected.length > 0 && (
          <>
            <button
              type="button"
              class="quiet"
              onClick={() =>
                void run(async () => {
                  for (const file of selected) save(await contentOf(file), file.filename);
                })
              }
            >
              {text.downloadChosen}
            </button>
            <ConfirmButton
              label={text.removeChosen}
              question={text.removeChosenQuestion(selected.length)}
              onConfirm={async () => {
                try {
                  for (const { id } of selected) await deleteFile(id);
                } finally {
                  onDeleted();
                }
              }}
            />
          </>
        )}
      </div>
      <Failure error={error} />
    </div>
  );
}
