// English texts of the forms of blocks.
import { exact } from "../../parts/formats";

export const formsWords = {
  title: "Edit the block",
  keys: "Ctrl+Enter saves, Escape cancels.",
  changed:
    "Somebody changed this block while you were editing it. Below is what it is now; what you typed is still here.",
  remove: "Remove",
  caption: "Caption",
  label: "Label, by which texts refer to it",
  labelExample: "fig-tides",
  headingExample: "sec-methods",
  latex: "LaTeX",
  language: "Language",
  code: "Code",
  items: {
    name: (number: number) => `Name ${exact(number)}`,
    text: (number: number) => `Text ${exact(number)}`,
    item: (number: number) => `Item ${exact(number)}`,
    add: "Add an item",
  },
  authors: {
    author: (number: number) => `Author ${exact(number)}`,
    institutionOf: (number: number) => `Institution of author ${exact(number)}`,
    institution: (number: number) => `Institution ${exact(number)}`,
    noInstitution: "No institution",
    star: "Star",
    add: "Add an author",
    addInstitution: "Add an institution",
  },
  pictures: {
    picture: (number: number) => `Picture ${exact(number)}`,
    pictureToRemove: (number: number) => `picture ${exact(number)}`,
    address: "Address",
    file: "File",
    alt: "Description, for those who do not see it",
    title: "Title, shown when it is pointed at",
    width: "Width, such as 50% or 12rem",
    upload: "Upload pictures",
    addAddress: "Add an address",
  },
} as const;
