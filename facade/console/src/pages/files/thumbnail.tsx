// What a file looks like, small: images, first pages, first words, and the kind of all others.
import { useEffect, useRef, useState } from "preact/hooks";

import { useLoaded } from "../../parts/loading";
import { Markdown } from "../../parts/markdown";
import { useIsNear } from "../../parts/near";
import { pageOf } from "./file_pages";
import { useObjectAddress } from "./object_address";
import { isText, kindOf } from "./preview";
import { type StoreFile, contentOf } from "./store";

const MAX_IMAGE = 5 * 1024 * 1024;
const TEXT_BYTES = 600;
const EXTENSION = /\.([a-z0-9]{1,5})$/i;

export function Thumbnail({ file }: { file: StoreFile }) {
  const place = useRef<HTMLDivElement>(null);
  const isNear = useIsNear(place);
  // What was loaded once stays.
  const [wasNear, setWasNear] = useState(false);
  useEffect(() => {
    if (isNear) setWasNear(true);
  }, [isNear]);
  return (
    <div class="thumbnail" aria-hidden="true" ref={place}>
      {wasNear ? <Shown file={file} /> : <Kind file={file} />}
    </div>
  );
}

function Shown({ file }: { file: StoreFile }) {
  const kind = kindOf(file);
  if (kind === "image" && file.size_bytes <= MAX_IMAGE) return <ImageThumbnail file={file} />;
  if (kind === "pages") return <PageThumbnail file={file} />;
  return isText(kind) ? <TextThumbnail file={file} /> : <Kind file={file} />;
}

function Kind({ file }: { file: StoreFile }) {
  const name = EXTENSION.exec(file.filename)?.[1] ?? file.mime_type.split("/")[0];
  return <span class="kind">{name}</span>;
}

function ImageThumbnail({ file }: { file: StoreFile }) {
  const { data } = useLoaded((signal) => contentOf(file, { signal }), [file.id]);
  const address = useObjectAddress(data);
  // A script in an SVG does not run where an image element shows it.
  return address ? <img src={address} alt="" /> : <Kind file={file} />;
}

function PageThumbnail({ file }: { file: StoreFile }) {
  const { data } = useLoaded(
    (signal) => pageOf(file.id, 1, { isThumbnail: true, signal }),
    [file.id],
  );
  const content = data?.content;
  const address = useObjectAddress(typeof content === "string" ? undefined : content);
  if (address) return <img class="sheet" src={address} alt="" />;
  if (typeof content !== "string") return <Kind file={file} />;
  return (
    <div class="small-text" inert>
      <Markdown text={content} />
    </div>
  );
}

function TextThumbnail({ file }: { file: StoreFile }) {
  const { data } = useLoaded(
    async (signal) => (await contentOf(file, { length: TEXT_BYTES, signal })).text(),
    [file.id],
  );
  return data === undefined ? <Kind file={file} /> : <pre>{data}</pre>;
}
