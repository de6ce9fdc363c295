import { useEffect, useRef, useState } from "preact/hooks";
import type { Fault } from "./protocol";

/** The text of the scenario, with the program's own words where it is wrong. */
export function Editor({ text, edited, fault, change, restore }: { text: string; edited: boolean; fault?: Fault; change(text: string): void; restore(): void }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLPreElement>(null);
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  const timer = useRef(0);
  const lines = typed.split("\n");
  const wrong = new Set(fault?.problems.filter((problem) => problem.in_text).map((problem) => problem.line));
  const show = (line: number, column: number, width: number) => {
    const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
    area.current?.focus();
    area.current?.setSelectionRange(before, before + Math.max(1, width));
    if (area.current) area.current.scrollTop = Math.max(0, (line - 5) * 19);
  };
  return (
    <section aria-labelledby="text">
      <div class="head">
        <h2 id="text">The scenario</h2>
        {edited && (
          <button type="button" class="small" onClick={restore}>
            as shipped
          </button>
        )}
      </div>
      <p class="small" id="text-hint">
        What sliders set stands on top of this text. Tab leaves the field.
      </p>
      <div class="editor">
        <pre ref={gutter} aria-hidden="true">
          {lines.map((_, at) => (
            <span class={wrong.has(at + 1) ? "wrong" : ""}>{at + 1}{"\n"}</span>
          ))}
        </pre>
        <textarea
          ref={area}
          spellcheck={false}
          autocapitalize="off"
          wrap="off"
          rows={22}
          aria-label="Scenario, TOML"
          aria-describedby="text-hint"
          aria-invalid={wrong.size > 0}
          value={typed}
          onScroll={(event) => gutter.current && (gutter.current.scrollTop = event.currentTarget.scrollTop)}
          onInput={(event) => {
            const value = event.currentTarget.value;
            setTyped(value);
            clearTimeout(timer.current);
            timer.current = window.setTimeout(() => change(value), 200);
          }}
        />
      </div>
      {fault && <Problems fault={fault} show={show} />}
    </section>
  );
}

/** What the program says. */
export function Problems({ fault, show }: { fault: Fault; show?(line: number, column: number, width: number): void }) {
  return (
    <div class="fault" role="alert">
      {fault.problems.length === 0 && <pre>{fault.text}</pre>}
      {fault.problems.map((problem) => (
        <div>
          {show && problem.in_text && problem.width > 0 && (
            <button type="button" class="small" onClick={() => show(problem.line, problem.column, problem.width)}>
              line {problem.line}
            </button>
          )}
          <pre>{problem.text}</pre>
        </div>
      ))}
    </div>
  );
}
