// The pages of a document, each of which is loaded when one scrolls to it.
import { useEffect, useRef, useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { Markdown } from "../../parts/markdown";
import { useIsNear } from "../../parts/near";
import { words } from "../../words/common";
import { filesWords } from "../../words/files";
import { type FilePage, pageOf } from "./file_pages";
import { useObjectAddress } from "./object_address";
import type { StoreFile } from "./store";

const text = filesWords;

// Of the setting's default; the gateway refuses pages beyond it.
const MAX_PAGES = 500;

export function PagesPreview({ file }: { file: StoreFile }) {
  const { data, error } = useLoaded((signal) => pageOf(file.id, 1, { signal }), [file.id]);
  if (error !== undefined) return <Failure error={error} />;
  if (data === undefined) return <p role="status">{words.loading}</p>;
  const shown = Math.min(data.count, MAX_PAGES);
  return (
    <>
      <div class="file-pages" role="region" aria-label={text.pagesOf(file.filename)} tabIndex={0}>
        <FirstPage page={data} />
        {Array.from({ length: shown - 1 }, (_, index) => (
          <LaterPage key={index} file={file} number={index + 2} count={data.count} />
        ))}
      </div>
      {shown < data.count && <p class="hint">{text.firstPages(shown, data.count)}</p>}
    </>
  );
}

function FirstPage({ page }: { page: FilePage }) {
  return (
    <section class="file-page">
      <Content page={page} number={1} />
    </section>
  );
}

function LaterPage({ file, number, count }: { file: StoreFile; number: number; count: number }) {
  const place = useRef<HTMLElement>(null);
  const isNear = useIsNear(place, ".file-pages");
  // A page that was seen keeps its height when it is put away again.
  const [height, setHeight] = useState(0);
  return (
    <section
      class={height ? "file-page" : "file-page unseen"}
      ref={place}
      style={height ? { minHeight: `${height}px` } : undefined}
      aria-label={text.page(number, count)}
    >
      {isNear && (
        <LoadedPage
          file={file}
          number={number}
          onShown={() => setHeight(place.current?.offsetHeight ?? 0)}
        />
      )}
    </section>
  );
}

function LoadedPage({
  file,
  number,
  onShown,
}: {
  file: StoreFile;
  number: number;
  onShown: () => void;
}) {
  const { data, error } = useLoaded((signal) => pageOf(file.id, number, { signal }), [file.id]);
  if (error !== undefined) return <Failure error={error} />;
  if (data === undefined) return <p role="status">{words.loading}</p>;
  return <Content page={data} number={number} onShown={onShown} />;
}

function Content({
  page: { content, count },
  number,
  onShown,
}: {
  page: FilePage;
  number: number;
  onShown?: () => void;
}) {
  const address = useObjectAddress(typeof content === "string" ? undefined : content);
  const name = text.page(number, count);
  useEffect(() => {
    if (typeof content === "string") onShown?.();
  }, [content]);
  return (
    <>
      {typeof content === "string" ? (
        <Markdown text={content} />
      ) : (
        address && <img src={address} alt={name} onLoad={onShown} />
      )}
      <p class="hint">{name}</p>
    </>
  );
}
