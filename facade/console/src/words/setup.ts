// English texts of the setup.
export const setupWords = {
  title: "Set up the gateway",
  provider: "Add a provider of models",
  key: "Create a key for a user",
  chat: "Try a chat",
  done: "done",
  hide: "Hide",
} as const;
