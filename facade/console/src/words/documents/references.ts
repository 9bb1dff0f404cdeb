// English texts of the references of a document.
export const referencesWords = {
  title: "References",
  style: "Citation style",
  styles: { numbers: "Numbers: [1]", years: "Author and year: (Newton, 1687)" },
  /** In place of a year that is not known, and of authors after the first of many. */
  noDate: "n.d.",
  andOthers: (first: string) => `${first} et al.`,
  add: "Add a reference",
  formOfNew: "New reference",
  form: "Reference",
  none: "None yet. Add one, then cite it with a block or with selected text.",
  notCited: "Not cited",
  edit: "Edit",
  remove: "Delete",
  removeQuestion: (title: string) => `Delete “${title}” and every citation of it?`,
  save: "Save the reference",
  fields: {
    title: "Title",
    author: "Authors, with semicolons between them",
    journal: "Journal",
    year: "Year",
    volume: "Volume",
    pages: "Pages",
    publisher: "Publisher",
    doi: "DOI",
    url: "Address",
  },
} as const;
