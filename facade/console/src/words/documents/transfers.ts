// English texts of the import and export of documents.
import { exact } from "../../parts/formats";

export const transfersWords = {
  formats: {
    pdf: "PDF",
    docx: "Word (DOCX)",
    odt: "LibreOffice (ODT)",
    html: "Web page (HTML)",
    markdown: "Markdown",
    latex: "LaTeX",
    typst: "Typst",
    epub: "EPUB",
    jats: "JATS XML",
    bibtex: "References as BibTeX",
    "csl-json": "References as CSL-JSON",
  },
  export: "Export…",
  exporting: "Exporting…",
  import: "Import…",
  importing: "Importing…",
  file: "Document to import",
  unknownFormat:
    "Choose a file of Markdown, Word (DOCX), LaTeX, HTML or JATS, or a project in LaTeX as a ZIP archive.",
  lost: "What was left out",
  lostHint: "The formats differ; this was left out:",
  hide: "Hide",
  more: (count: number) => `and ${exact(count)} more`,
} as const;
