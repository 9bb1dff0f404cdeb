// English texts of the list of documents.
export const documentsWords = {
  title: "Documents",
  none: "There are no documents yet",
  noneHint: "Enter a name above and choose “Create”: you get an empty page to write on.",
  unknown: "There is no such document.",
  create: "Create",
  form: "New document",
  name: "Name of a new document",
  untitled: "Untitled",
  group: "Group",
  remove: "Delete",
  removeQuestion: (name: string) => `Delete ${name}?`,
} as const;
