// Figures in the unit that fits them, in the browser's language.

const whole = new Intl.NumberFormat();
const tenths = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const twoDigits = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const percents = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });

/** Return a time span, such as "412 ms", "1.2 s", "10 s" or "2 min 5 s". */
export function duration(ms: number): string {
  if (ms < 999.5) return `${whole.format(Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${tenths.format(seconds)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${whole.format(rounded)} s`;
  const minutes = Math.floor(rounded / 60);
  const rest = rounded % 60;
  return rest === 0 ? `${whole.format(minutes)} min` : `${whole.format(minutes)} min ${rest} s`;
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
  const size = Math.abs(value);
  const isSmall = size > 0 && size < 0.995;
  return new Intl.NumberFormat(undefined, {
    style: "currency",
    currency: "USD",
    ...(isSmall
      ? { minimumSignificantDigits: 2, maximumSignificantDigits: 3 }
      : size >= 10_000
        ? { notation: "compact", maximumFractionDigits: 1 }
        : { minimumFractionDigits: 2, maximumFractionDigits: 2 }),
  } as Intl.NumberFormatOptions).format(value);
}
