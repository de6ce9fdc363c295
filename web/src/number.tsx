import { useEffect, useState } from "preact/hooks";

/** A number that is taken when it is typed; what is being typed stays while the page shows news. */
export function NumberField({ value, id, min, max, step, take }: { value: number; id?: string; min: number; max?: number; step?: string; take(value: number): void }) {
  const [typed, setTyped] = useState(String(value));
  useEffect(() => setTyped(String(value)), [value]);
  return (
    <input
      {...(id ? { id } : {})}
      type="number"
      min={min}
      {...(max === undefined ? {} : { max })}
      step={step ?? "1"}
      value={typed}
      onInput={(event) => setTyped(event.currentTarget.value)}
      onChange={(event) => {
        const given = Number(event.currentTarget.value);
        if (event.currentTarget.value !== "" && Number.isFinite(given)) take(Math.max(min, Math.min(max ?? Infinity, given)));
        else setTyped(String(value));
      }}
    />
  );
}
