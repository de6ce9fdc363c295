import { useEffect, useRef, useState } from "preact/hooks";
import type { Completion, Schema, Suggestion } from "./complete";
import type { Fault } from "./protocol";

/** Of the text, as lab.css has it. */
const LINE_PX = 19;
const PADDING_PX = 8;

interface EditorProps {
  text: string;
  edited: boolean;
  fault?: Fault;
  change(text: string): void;
  restore(): void;
  schema(): Promise<Schema>;
}

/** The text of the scenario, with the program's own words where it is wrong, and what can stand at the caret. */
export function Editor({ text, edited, fault, change, restore, schema }: EditorProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLPreElement>(null);
  const [typed, setTyped] = useState(text);
  // The text that this field gave last comes back to it, perhaps after more was typed.
  const given = useRef(text);
  useEffect(() => {
    if (text !== given.current) setTyped((given.current = text));
  }, [text]);
  const timer = useRef(0);
  const known = useRef<Schema | undefined>(undefined);
  const [list, setList] = useState<Completion & { chosen: number; top: number; left: number }>();
  const lines = typed.split("\n");
  const wrong = new Set(fault?.problems.filter((problem) => problem.in_text).map((problem) => problem.line));
  const show = (line: number, column: number, width: number) => {
    const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
    area.current?.focus();
    area.current?.setSelectionRange(before, before + Math.max(1, width));
    if (area.current) area.current.scrollTop = Math.max(0, (line - 5) * LINE_PX);
  };
  const take = (value: string) => {
    setTyped(value);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => change((given.current = value)), 200);
  };
  const suggest = async () => {
    known.current ??= await schema();
    const { value, selectionEnd, scrollTop, scrollLeft, clientWidth } = area.current!;
    const found = known.current.complete(value, selectionEnd) ?? { from: selectionEnd, to: selectionEnd, all: [] };
    const before = value.slice(0, found.from).split("\n");
    const letter = 7.83;
    const left = PADDING_PX + before.at(-1)!.length * letter - scrollLeft;
    setList({ ...found, chosen: 0, top: PADDING_PX + before.length * LINE_PX - scrollTop, left: Math.max(0, Math.min(left, clientWidth - 300)) });
    area.current!.focus();
  };
  const accept = ({ insert }: Suggestion) => {
    const { value } = area.current!;
    const stop = insert.indexOf("|");
    const plain = insert.replace("|", "");
    const next = value.slice(0, list!.from) + plain + value.slice(list!.to);
    const caret = list!.from + (stop < 0 ? plain.length : stop);
    area.current!.value = next;
    area.current!.focus();
    area.current!.setSelectionRange(caret, caret);
    take(next);
    setList(undefined);
    // A key asks for its value.
    if (plain.endsWith("= ")) void suggest();
  };
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey && event.code === "Space") {
      event.preventDefault();
      return void suggest();
    }
    if (!list) return;
    const { all, chosen } = list;
    const move = (to: number) => setList({ ...list, chosen: (to + all.length) % Math.max(1, all.length) });
    if (event.key === "ArrowDown") move(chosen + 1);
    else if (event.key === "ArrowUp") move(chosen - 1);
    else if (event.key === "Escape") setList(undefined);
    else if (event.key === "Enter" && all[chosen]) accept(all[chosen]);
    else {
      if (["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown", "Tab", "Enter"].includes(event.key)) setList(undefined);
      return;
    }
    event.preventDefault();
  };
  useEffect(() => {
    document.getElementById(`suggestion-${list?.chosen}`)?.scrollIntoView({ block: "nearest" });
  }, [list?.chosen]);
  const chosen = list?.all[list.chosen];
  return (
    <section aria-labelledby="text">
      <div class="head">
        <h2 id="text">The scenario</h2>
        <button type="button" class="small" onClick={() => void suggest()}>
          What can stand here
        </button>
        {edited && (
          <button type="button" class="small" onClick={restore}>
            as shipped
          </button>
        )}
      </div>
      <p class="small" id="text-hint">
        What sliders set stands on top of this text. Ctrl and the space bar suggest what can stand at the caret. Tab leaves the field.
      </p>
      <div class="completed">
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
            aria-autocomplete="list"
            aria-haspopup="listbox"
            {...(list ? { "aria-controls": "suggestions" } : {})}
            {...(chosen ? { "aria-activedescendant": `suggestion-${list!.chosen}` } : {})}
            value={typed}
            onScroll={(event) => {
              if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop;
              if (list) void suggest();
            }}
            onKeyDown={keys}
            onBlur={() => setList(undefined)}
            onClick={() => setList(undefined)}
            onInput={(event) => {
              take(event.currentTarget.value);
              if (list) void suggest();
            }}
          />
        </div>
        {list && list.all.length > 0 && (
          <div class="suggested" style={{ top: `${list.top}px`, left: `calc(2.8rem + ${list.left}px)` }}>
            <div id="suggestions" role="listbox" aria-label="What can stand here">
              {list.all.map((suggestion, at) => (
                <div
                  id={`suggestion-${at}`}
                  role="option"
                  aria-selected={at === list.chosen}
                  aria-label={`${suggestion.text}. ${suggestion.words}`}
                  onPointerDown={(event) => {
                    event.preventDefault();
                    accept(suggestion);
                  }}
                >
                  {suggestion.text}
                </div>
              ))}
            </div>
            {chosen?.words && (
              <p class="small" aria-hidden="true">
                {chosen.words}
              </p>
            )}
          </div>
        )}
      </div>
      <p class="small" role="status">
        {list && (list.all.length === 0 ? "Nothing can be suggested here." : `${list.all.length} ${list.all.length === 1 ? "suggestion" : "suggestions"}; arrows choose, Enter takes, Escape closes.`)}
      </p>
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
