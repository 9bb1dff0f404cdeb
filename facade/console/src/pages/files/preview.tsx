// What a file holds, as far as a browser shows it without running any of it.
import { Failure } from "../../parts/failure";
import { size } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { Markdown } from "../../parts/markdown";
import { words } from "../../words/common";
import { filesWords } from "../../words/files";
import { hasPages } from "./file_pages";
import { useObjectAddress } from "./object_address";
import { PagesPreview } from "./pages_preview";
import { type StoreFile, contentOf } from "./store";

const text = filesWords;

const MAX_TEXT = 200 * 1024;
const MAX_MEDIA = 50 * 1024 * 1024;
const TEXTS = /^(text\/|application\/(json|xml|x-ndjson|toml|yaml|javascript)$)|\+(json|xml)$/;

export type Kind = "image" | "audio" | "video" | "text" | "markdown" | "pages" | "none";

export function kindOf(file: StoreFile): Kind {
  const [family] = file.mime_type.split("/");
  if (family === "image" || family === "audio" || family === "video") {
    return file.size_bytes <= MAX_MEDIA ? family : "none";
  }
  if (hasPages(file.mime_type)) return "pages";
  if (file.mime_type === "text/markdown" || /\.(md|markdown)$/i.test(file.filename)) {
    return "markdown";
  }
  return TEXTS.test(file.mime_type) ? "text" : "none";
}

export const isText = (kind: Kind): boolean => kind === "text" || kind === "markdown";

export function Preview({ file }: { file: StoreFile }) {
  const kind = kindOf(file);
  switch (kind) {
    case "none":
      return <p class="hint">{text.noPreview(file.mime_type)}</p>;
    case "pages":
      return <PagesPreview file={file} />;
    case "text":
    case "markdown":
      return <TextPreview file={file} isMarkdown={kind === "markdown"} />;
    default:
      return <MediaPreview file={file} kind={kind} />;
  }
}

function TextPreview({ file, isMarkdown }: { file: StoreFile; isMarkdown: boolean }) {
  const { data, error } = useLoaded(
    async (signal) => (await contentOf(file, { length: MAX_TEXT, signal })).text(),
    [file.id],
  );
  if (error !== undefined) return <Failure error={error} />;
  if (data === undefined) return <p role="status">{words.loading}</p>;
  return (
    <>
      {isMarkdown ? <Markdown text={data} /> : <pre tabIndex={0}>{data}</pre>}
      {file.size_bytes > MAX_TEXT && <p class="hint">{text.firstShown(size(MAX_TEXT))}</p>}
    </>
  );
}

function MediaPreview({ file, kind }: { file: StoreFile; kind: "image" | "audio" | "video" }) {
  const { data, error } = useLoaded((signal) => contentOf(file, { signal }), [file.id]);
  const address = useObjectAddress(data);
  if (error !== undefined) return <Failure error={error} />;
  if (!address) return <p role="status">{words.loading}</p>;
  // A script in an SVG does not run where an image element shows it.
  if (kind === "image") return <img class="preview" src={address} alt={file.filename} />;
  if (kind === "audio") return <audio controls src={address} aria-label={file.filename} />;
  return <video class="preview" controls src={address} aria-label={file.filename} />;
}
