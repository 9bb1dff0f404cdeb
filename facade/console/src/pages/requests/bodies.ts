// Logged bodies: JSON, or server-sent events with JSON.

/** Return the values in a body; none of what is no JSON, such as the cut end of one. */
export function eventsOf(content: string): unknown[] {
  const whole = parsed(content);
  if (whole !== undefined) return [whole];
  return content
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => parsed(line.slice(6)))
    .filter((value) => value !== undefined);
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
