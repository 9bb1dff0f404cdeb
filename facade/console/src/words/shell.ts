// English texts of the frame around all pages, and of the sign-in.
export const shellWords = {
  name: "Gateway",
  console: "Console",
  skip: "Skip to the content",
  noPage: "There is no such page",
  noPageTitle: "Not found",
  toChat: "Go to the chat",
  pages: {
    label: "Pages",
    chat: "Chat",
    chats: "Chats",
    documents: "Documents",
    files: "Files",
    memory: "Memory",
    overview: "Overview",
    requests: "Requests",
    people: "People and keys",
    providers: "Providers and models",
    more: "More",
    menu: "Menu",
  },
  recent: {
    chats: "Recent chats",
    newChat: "New chat",
    documents: "Recent documents",
    documentsHeading: "Documents",
  },
  theme: {
    label: "Theme",
    choices: { system: "System", light: "Light", dark: "Dark" },
    choose: (name: string) => `Theme: ${name.toLowerCase()}`,
  },
  goTo: "Go to…",
  signOut: "Sign out",
  signedInAs: (user: string, role: string, version: string) =>
    [`Signed in as ${user}${role && `, ${role.toLowerCase()}`}`, version && `version ${version}`]
      .filter(Boolean)
      .join(" · "),
  palette: {
    title: "Go to",
    field: "Page, chat, document or command",
    hint: "Go to a page, chat or document…",
    commands: "Commands",
    kinds: { page: "Page", action: "Action", chat: "Chat", document: "Document" },
  },
  keys: {
    title: "Keyboard shortcuts",
    list: [
      ["Ctrl+K", "Go to a page, chat or document"],
      ["?", "Show these keys"],
      ["Enter", "Send the message"],
      ["Shift+Enter", "Begin a line of the message"],
      ["↑", "In an empty message: edit the last one"],
      ["Esc", "Stop the answer, or leave what is edited"],
      ["↑ ↓", "In a document: select another block"],
      ["Enter", "In a document: edit the selected block"],
      ["Ctrl+Enter", "In a document: save the block"],
    ],
  },
  signIn: {
    at: (issuer: string) => `Sign in with ${issuer}`,
    orKey: "or with a key:",
    hint: [" and ", " print a link that signs in, and ", " makes a key. The sign-in holds for all tabs."],
    again: "Sign in again",
    ended: "Your sign-in has ended",
    goOn: (user: string) => `Sign in again as ${user} to go on. Nothing that you have written is lost.`,
    done: "You are signed in",
    back: "Go back to the tab in which you were working.",
    openHere: "Open the console here",
    key: "API key",
    submit: "Sign in",
    failures: {
      denied:
        "You may not sign in here. Ask an administrator, who finds the reason in the gateway’s log.",
      unavailable: "The single sign-on does not answer. Try again later.",
      absent: "This gateway has no single sign-on.",
      failed: "The sign-in did not work. Try again.",
    },
    usedLink:
      "The link has been used or has expired. Enter a key, or print a new link with `gateway console`.",
  },
  admin: {
    notYours:
      "Your role does not permit operations. An administrator of the single sign-on decides it.",
    noSubject: {
      user: (name: string) => `There is no user with the name ${name}.`,
      team: (name: string) => `There is no team with the name ${name}.`,
    },
    key: "Admin key",
    submit: "Show operations",
    hint: " makes one. It opens operations in all tabs until the sign-in ends.",
  },
} as const;
