import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

const waiting = new Set<() => void>();
let begun = false;

/** Calls this in a task of its own, so that keys are heard between two of them; what it returns takes it back. */
export function inTurn(work: () => void): () => void {
  waiting.add(work);
  const next = () => {
    const [first] = waiting;
    begun = first !== undefined;
    if (!first) return;
    waiting.delete(first);
    setTimeout(next);
    first();
  };
  if (!begun) {
    begun = true;
    setTimeout(next);
  }
  return () => waiting.delete(work);
}

/** A part of the page that is built, and built again, after what stands above it, in a task of its own. */
export function InTurn({ children }: { children: ComponentChildren }) {
  const [built, setBuilt] = useState<ComponentChildren>(null);
  const latest = useRef(children);
  latest.current = children;
  // One function keeps its turn: news that come faster than turns would put a new one off for ever.
  const build = useCallback(() => setBuilt(latest.current), []);
  useEffect(() => void inTurn(build), [children]);
  useEffect(() => () => void waiting.delete(build), []);
  return <>{built}</>;
}
