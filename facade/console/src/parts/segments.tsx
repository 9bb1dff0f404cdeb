// A choice of a few, of which one is on.

export function Segments<T extends string>({
  label,
  choices,
  value,
  onChange,
}: {
  /** Of the group, for screen readers. */
  label: string;
  /** What each choice is called. */
  choices: Readonly<Record<T, string>>;
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {(Object.keys(choices) as T[]).map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === value}
          onClick={() => onChange(one)}
        >
          {choices[one]}
        </button>
      ))}
    </div>
  );
}
