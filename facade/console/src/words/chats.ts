// English texts of the list of chats.
export const chatsWords = {
  title: "Chats",
  newChat: "New chat",
  search: "Search",
  searchHint: "Words of a title",
  none: "There are no chats yet",
  noneHint: ["Conversations of the ", "chat", " are kept here, as conversations of the API."],
  noneFound: "No chat has these words in its title",
  more: "More chats",
  rename: "Rename",
  export: "Export",
  remove: "Delete",
  removeQuestion: (title: string) => `Delete ${title}?`,
  name: "Title",
} as const;
