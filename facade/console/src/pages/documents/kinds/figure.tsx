// Pictures. One of another site is named and linked, not loaded: the page loads nothing from there.
import { useEffect, useRef, useState } from "preact/hooks";

import { send } from "../../../api/client";
import { safeAddress } from "../../../parts/links";
import { blocksWords } from "../../../words/documents/blocks";
import { length, look } from "../look";
import { useNear } from "../near";
import type { BlockState, Picture } from "../types";

const DATA_IMAGE = /^data:image\/[a-z0-9.+-]+[;,]/i;

export function Figure({ state }: { state: BlockState }) {
  const pictures = state.block.image ?? [];
  if (pictures.length === 0) return <p class="hint">{blocksWords.noPicture}</p>;
  const columns = Number(state.style["columns"] ?? Math.min(pictures.length, 3));
  return (
    <div
      class="pictures"
      style={{ ...look(state.style.style), "--columns": String(columns) }}
    >
      {pictures.map((picture, place) => (
        <figure key={place}>
          <Shown picture={picture} />
          {picture.title && <figcaption>{picture.title}</figcaption>}
        </figure>
      ))}
    </div>
  );
}

function Shown({ picture }: { picture: Picture }) {
  if (picture.fileId !== undefined) return <StoredPicture picture={picture} id={picture.fileId} />;
  const url = picture.url ?? "";
  if (DATA_IMAGE.test(url)) return <Image picture={picture} address={url} />;
  const address = safeAddress(url);
  return (
    <p class="elsewhere">
      {picture.alt || blocksWords.picture}{" "}
      {address !== undefined && (
        <a href={address} target="_blank" rel="noopener noreferrer">
          {blocksWords.pictureAt(new URL(address).host)}
        </a>
      )}
    </p>
  );
}

function StoredPicture({ picture, id }: { picture: Picture; id: string }) {
  const element = useRef<HTMLSpanElement>(null);
  const isNear = useNear(element);
  const [address, setAddress] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!isNear) return;
    const controller = new AbortController();
    let made = "";
    send(`/v1/files/${encodeURIComponent(id)}/content`, { signal: controller.signal })
      .then((response) => response.blob())
      .then((content) => {
        if (controller.signal.aborted) return;
        made = URL.createObjectURL(content);
        setAddress(made);
      })
      .catch((error: unknown) => {
        if (!controller.signal.aborted) setProblem(String((error as Error).message));
      });
    return () => {
      controller.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [isNear, id]);
  return (
    <span ref={element}>
      {address && <Image picture={picture} address={address} />}
      {problem && (
        <span class="elsewhere">
          {picture.alt || id}: {problem}
        </span>
      )}
    </span>
  );
}

// A script in an SVG does not run where an image element shows it.
function Image({ picture, address }: { picture: Picture; address: string }) {
  const size: Record<string, string> = {};
  if (picture.width !== undefined) size["width"] = length(picture.width);
  if (picture.height !== undefined) size["height"] = length(picture.height);
  return <img src={address} alt={picture.alt ?? ""} style={size} />;
}
