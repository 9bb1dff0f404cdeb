// What a file looks like, small: images and the first words of texts, and the kind of all others.
import { useEffect, useRef, useState } from "preact/hooks";

import { useObjectAddress } from "./object_address";
import { isText, kindOf } from "./preview";
import { type StoreFile, contentOf } from "./store";

const MAX_IMAGE = 5 * 1024 * 1024;
const TEXT_BYTES = 600;
const EXTENSION = /\.([a-z0-9]{1,5})$/i;

export function Thumbnail({ file }: { file: StoreFile }) {
  const place = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setNear(true);
      },
      { rootMargin: "200px" },
    );
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  const kind = kindOf(file);
  const isSmallImage = kind === "image" && file.size_bytes <= MAX_IMAGE;
  return (
    <div class="thumbnail" aria-hidden="true" ref={place}>
      {isNear && isSmallImage ? (
        <ImageThumbnail file={file} />
      ) : isNear && isText(kind) ? (
        <TextThumbnail file={file} />
      ) : (
        <Kind file={file} />
      )}
    </div>
  );
}

function Kind({ file }: { file: StoreFile }) {
  const name = EXTENSION.exec(file.filename)?.[1] ?? file.mime_type.split("/")[0];
  return <span class="kind">{name}</span>;
}

function ImageThumbnail({ file }: { file: StoreFile }) {
  const { address } = useObjectAddress(file);
  // A script in an SVG does not run where an image element shows it.
  return address ? <img src={address} alt="" /> : <Kind file={file} />;
}

function TextThumbnail({ file }: { file: StoreFile }) {
  const [start, setStart] = useState<string>();
  useEffect(() => {
    const controller = new AbortController();
    contentOf(file, { length: TEXT_BYTES, signal: controller.signal })
      .then((content) => content.text())
      .then(setStart, () => undefined);
    return () => controller.abort();
  }, [file.id]);
  return start === undefined ? <Kind file={file} /> : <pre>{start}</pre>;
}
