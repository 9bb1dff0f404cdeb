// Numbers and times as people read them, in the browser's language.
const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;
const time = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

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

/** Return an amount of decimal dollars, with cents; of less than a dollar also what is below a cent. */
export function dollars(amount: string): string {
  const value = Number(amount);
  const maximumFractionDigits = Math.abs(value) < 1 ? 6 : 2;
  const options = { minimumFractionDigits: 2, maximumFractionDigits };
  return `$${new Intl.NumberFormat(undefined, options).format(value)}`;
}

/** Return a time, as Unix seconds or RFC 3339. */
export function when(at: number | string): string {
  return time.format(typeof at === "number" ? at * 1000 : new Date(at));
}
