// English texts of the page of files.
import { exact } from "../parts/formats";
import { plural } from "./plural";

const OFFICE = "application/vnd.openxmlformats-officedocument";
// Types of files, by their MIME types.
const FILE_TYPES: Readonly<Record<string, string>> = {
  "application/pdf": "PDF",
  [`${OFFICE}.wordprocessingml.document`]: "Word document",
  [`${OFFICE}.spreadsheetml.sheet`]: "Excel workbook",
  [`${OFFICE}.presentationml.presentation`]: "PowerPoint slides",
  "application/json": "JSON",
  "application/jsonl": "JSON lines",
  "application/octet-stream": "Unknown type",
  "application/zip": "ZIP archive",
  "text/csv": "CSV",
  "text/html": "Web page",
  "text/markdown": "Markdown",
  "text/plain": "Text",
};
const FILE_FAMILIES: Readonly<Record<string, string>> = {
  audio: "recording",
  image: "image",
  text: "text",
  video: "film",
};

/** Return what people call a type of files, such as "PNG image". */
function fileType(mimeType: string): string {
  const type = FILE_TYPES[mimeType];
  if (type !== undefined) return type;
  const [family = "", sub = ""] = mimeType.split("/");
  const kind = FILE_FAMILIES[family];
  return kind === undefined ? mimeType : `${sub.replace(/^x-|\+.*$/g, "").toUpperCase()} ${kind}`;
}

export const filesWords = {
  title: "Files",
  upload: "Upload files",
  search: "Find a file",
  sort: "Sort by",
  orders: {
    newest: "newest first",
    oldest: "oldest first",
    name: "name",
    largest: "largest first",
    kind: "type",
  },
  none: "There are no files yet",
  noneHint: "Drop some onto this page, or choose “Upload files”. Requests name them by their id.",
  noneNamed: (query: string) => `No file matches “${query}”`,
  more: "More files",
  quota: (files: number, used: string, quota: string) =>
    `${plural(files, "file takes", "files take")} up ${used} of ${quota}`,
  chooseAll: "Choose all",
  choose: (name: string) => `Choose ${name}`,
  chosen: (count: number) => `${exact(count)} chosen`,
  downloadChosen: "Download the chosen ones",
  removeChosen: "Delete the chosen ones",
  removeChosenQuestion: (count: number) =>
    `Delete ${plural(count, "file", "files")}? Requests that name them will fail.`,
  expires: (at: string) => `expires ${at}`,
  preview: "Preview",
  download: "Download",
  remove: "Delete",
  removeQuestion: (name: string) => `Delete ${name}? Requests that name it will fail.`,
  type: fileType,
  noPreview: (type: string) => `There is no preview of ${type}. Download it to read it.`,
  firstShown: (size: string) => `The first ${size} are shown.`,
  pagesOf: (name: string) => `Pages of ${name}`,
  page: (number: number, count: number) => `Page ${exact(number)} of ${exact(count)}`,
  firstPages: (shown: number, count: number) =>
    `The first ${exact(shown)} of ${exact(count)} pages are shown. Download the file to read on.`,
} as const;
