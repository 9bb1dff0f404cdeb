// English texts of the page of an invitation.
export const invitationWords = {
  title: "You are invited",
  offer: (by: string | null, role: string, team: string | null) =>
    `${by ?? "An administrator"} invites you to this gateway as ${role.toLowerCase()}${
      team === null ? "" : ` of the team ${team}`
    }.`,
  for: (user: string) => `The invitation is for ${user}.`,
  until: (at: string) => `You can accept until ${at}.`,
  signedIn: (user: string) =>
    `You are signed in as ${user}. If you accept, this browser is signed in as the new user instead.`,
  name: "Your user name",
  accept: "Accept the invitation",
  acceptAt: (issuer: string) => `Accept by signing in with ${issuer}`,
  notNow: "Not now",
  leave: "Go to the console",
  welcome: (user: string) => `Welcome, ${user}`,
  keyOnce:
    "This is your key. It is shown this once: keep it in a safe place. You sign in with it later.",
  go: "I have kept it: go to the console",
} as const;
