// Numbers, amounts of money and times as people read them, in the browser's language. The symbols of
// units (ms, s, min) are the same in all languages.
const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const twoDigits = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const percents = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const usd = (options: Intl.NumberFormatOptions): Intl.NumberFormat =>
  new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", ...options });
const cents = usd({ minimumFractionDigits: 2, maximumFractionDigits: 2 });
const belowCents = usd({ minimumFractionDigits: 2, maximumFractionDigits: 6 });
const smallMoney = usd({ minimumSignificantDigits: 2, maximumSignificantDigits: 3 });
const largeMoney = usd({ notation: "compact", maximumFractionDigits: 1 });
const time = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const second = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const sortOrder = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Return a time, as Unix seconds or RFC 3339, to the minute. */
export function when(at: number | string): string {
  return time.format(typeof at === "number" ? at * 1000 : new Date(at));
}

/** Return a time of the last weeks, as Unix seconds, to the second. */
export function moment(at: number): string {
  return second.format(at * 1000);
}

/** How the times of a chart are written. */
export interface ChartTimes {
  tick: (at: number) => string;
  full: (at: number) => string;
  /** As RFC 3339, for other programs. */
  exact: (at: number) => string;
}

/** Return how Unix seconds are written in a chart, in a time zone; the browser's without one. */
export function chartTimes(timeZone: string | undefined, isDaily: boolean): ChartTimes {
  const zone = timeZone === undefined ? {} : { timeZone };
  const day = new Intl.DateTimeFormat(undefined, { ...zone, day: "numeric", month: "short" });
  const hour = new Intl.DateTimeFormat(undefined, { ...zone, hour: "numeric", minute: "2-digit" });
  const full = new Intl.DateTimeFormat(undefined, {
    ...zone,
    dateStyle: "medium",
    ...(isDaily ? {} : { timeStyle: "short" }),
  });
  const isMidnight = (at: number): boolean => {
    const date = new Date(at * 1000);
    return date.getHours() === 0 && date.getMinutes() === 0;
  };
  return {
    tick: (at) => (isDaily || isMidnight(at) ? day : hour).format(at * 1000),
    full: (at) => full.format(at * 1000),
    exact: (at) => new Date(at * 1000).toISOString(),
  };
}

/** Return an order of names in which people look for them. */
export function compareNames(one: string, other: string): number {
  return sortOrder.compare(one, other);
}

/** Return a size in bytes in the largest unit of which there is one, such as "1.5 MB". */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const unitDisplay = unit === 0 ? "long" : "short";
  const options = { style: "unit", unit: UNITS[unit], unitDisplay } as const;
  const maximumFractionDigits = value < 10 && unit > 0 ? 1 : 0;
  return new Intl.NumberFormat(undefined, { ...options, maximumFractionDigits }).format(value);
}

/** Return a time span, such as "412 ms", "1.2 s", "10 s" or "2 min 5 s". */
export function duration(ms: number): string {
  if (ms < 999.5) return `${whole.format(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${tenths.format(seconds)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${whole.format(rounded)} s`;
  const minutes = `${whole.format(Math.floor(rounded / 60))} min`;
  const rest = rounded % 60;
  return rest === 0 ? minutes : `${minutes} ${whole.format(rest)} s`;
}

/** Return a count: exact up to 9,999, such as "12.3K" above. */
export function count(value: number): string {
  return Math.abs(value) < 10_000 ? tenths.format(value) : short.format(value);
}

/** Return an exact whole number. */
export function exact(value: number): string {
  return whole.format(value);
}

/** Return a number with two digits of its fraction. */
export function hundredths(value: number): string {
  return twoDigits.format(value);
}

/** Return a part of a whole, 0 to 1. */
export function share(value: number): string {
  return percents.format(value);
}

/** Return US dollars: with cents, and of less than a cent as many digits as it takes to see one. */
export function money(value: number): string {
  const absolute = Math.abs(value);
  if (absolute > 0 && absolute < 0.995) return smallMoney.format(value);
  return (absolute >= 10_000 ? largeMoney : cents).format(value);
}

/** Return an exact price or limit in decimal US dollars. */
export function price(amount: string): string {
  const value = Number(amount);
  return (Math.abs(value) < 1 ? belowCents : cents).format(value);
}
