// English texts that several pages share.
import { exact } from "../parts/units";

export const words = {
  copy: "Copy",
  code: { it: "the code" },
  loading: "Loading…",
  roles: { viewer: "Viewer", user: "User", team_admin: "Team administrator", admin: "Administrator" },
  roleHints: {
    viewer: "A viewer reads what is their own, and changes nothing.",
    user: "A user works with models, documents and files.",
    team_admin: "A team administrator also invites people to the team and makes their keys.",
    admin: "An administrator also changes the gateway: people, limits, providers.",
  },
  plans: {
    personal_free: "Personal, free",
    personal_pro: "Personal, pro",
    team_pro: "Team, pro",
    enterprise: "Enterprise",
  },
  scope: { label: "Whose", choices: { mine: "Mine", everyone: "Everyone’s" } },
  pager: { back: "Newer", forward: "Older", page: (number: number) => `Page ${exact(number)}` },
  limits: {
    of: "of",
    left: (amount: string) => `${amount} left`,
    forecast: (amount: string) => `about ${amount} at the end, at this pace`,
    exhausted: (at: string) => `used up ${at}, at this pace`,
    resets: (at: string) => `starts again ${at}`,
  },
  chart: {
    time: "Time",
    whole: "Whole period",
    plot: (title: string) => `Chart: ${title}. Left and right arrow keys show the figures.`,
    lines: (title: string) => `Lines of ${title}`,
    table: (title: string) => `${title} as a table`,
  },
} as const;
