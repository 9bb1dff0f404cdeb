// English texts of the overview.
import { exact } from "../parts/formats";
import { plural } from "./plural";

export const overviewWords = {
  title: "Overview",
  spending: "Spending",
  spent: "Spent this month",
  forecast: "Expected this month",
  forecastHint: "at the pace so far",
  limits: "Limits and budgets",
  noLimits: {
    mine: "Neither your key, your user nor your team has a limit",
    everyone: "Nothing is limited",
  },
  setLimits: "Set a budget for a team, a user or a key",
  askForLimits: "An administrator can set them.",
  moreLimits: (count: number) => `${plural(count, "further limit is", "further limits are")} used less.`,
  allowed: (kind: string) => `Models that the ${kind} may use:`,
  noModels: "none",
  activity: "Activity",
  period: "Period",
  periods: { day: "24 hours", week: "7 days", month: "30 days" },
  by: "By",
  splits: { model: "Model", user: "User", team: "Team", key: "Key", provider: "Provider" },
  latency: "Latency",
  percentiles: { p50: "Median", p95: "95th percentile", p99: "99th percentile" },
  lines: { none: "none", others: "all others" },
  none: "There were no requests in this time",
  noneHint: ["Send one in the", "chat", ", or choose a longer time. It is counted within seconds."],
  mean: "Mean duration",
  charts: {
    requests: "Requests",
    errors: "Errors",
    duration: (percentile: string) => `Duration, ${percentile.toLowerCase()}`,
    first: (percentile: string) => `First content, ${percentile.toLowerCase()}`,
    tokens: "Tokens",
    cached: "Input tokens from a cache",
    cost: "Spend",
  },
  tags: {
    title: "Usage by tag",
    key: "Key of the tag",
    example: "project",
    show: "Show",
    none: "No requests with this tag",
    noneHint: (days: number) => [
      `None of the last ${exact(days)} days. The setting `,
      " has the keys that are counted.",
    ],
    columns: ["Requests", "Input tokens", "Output tokens", "Cost"],
  },
} as const;
