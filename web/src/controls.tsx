import { useEffect, useState } from "preact/hooks";
import { NumberField } from "./number";
import type { Json, Outline, Table } from "./protocol";
import { Quantity, assigned } from "./quantity";
import type { State } from "./state";
import { isLossy, key } from "./ways";

/** What of a link has sliders, wherever the file has it. */
const OF_LINKS = ["rate", "delay", "errors", "queue", "police", "jitter"];

interface Control {
  path: string;
  words: string;
  quantity: Quantity;
}

/** The quantities below a value. */
function leaves(value: Json | undefined, path: string, words: string): Control[] {
  if (value && typeof value === "object" && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([name, inner]) => leaves(inner, `${path}.${key(name)}`, `${words} ${name}`));
  }
  const quantity = Quantity.of(value, path);
  return quantity ? [{ path, words: words.replaceAll("_", " "), quantity }] : [];
}

function ofLink(name: string, link: Table): Control[] {
  return OF_LINKS.flatMap((of) => leaves(link[of], `links.${key(name)}.${of}`, of));
}

/** Models of errors to begin with; sliders go on from there. */
const ERRORS: [kind: string, words: string, value: string][] = [
  ["none", "none", '{ kind = "none" }'],
  ["uniform", "single frames", '{ kind = "uniform", rate = 0.05 }'],
  ["gilbert-elliott", "bursts (Gilbert-Elliott)", '{ kind = "gilbert-elliott", good_to_bad = 0.01, bad_to_good = 0.2, loss_good = 0.001, loss_bad = 0.5 }'],
  ["two-state", "fades (two states in time)", '{ kind = "two-state", good = "10 s", bad = "100 ms", ber_good = 1e-6, ber_bad = 0.01 }'],
  ["byte-exponential", "bad bytes", '{ kind = "byte-exponential", mean = "32768 B" }'],
];

/** What has another form, and not another value: the model of errors, and whether there is a policer. */
function Forms({ name, link, set }: { name: string; link: Table; set(path: string, value?: string): void }) {
  const errors = (link.errors ?? { kind: "none" }) as Table;
  const kind = typeof errors.kind === "string" ? errors.kind : "";
  const at = `links.${key(name)}`;
  return (
    <div class="row">
      <label class="field">
        errors
        <select value={kind} onChange={(event) => set(`${at}.errors`, ERRORS.find(([kind]) => kind === event.currentTarget.value)?.[2])}>
          {!ERRORS.some(([known]) => known === kind) && <option value={kind}>{kind || "of each way"}</option>}
          {ERRORS.map(([kind, words]) => <option value={kind}>{words}</option>)}
        </select>
      </label>
      <label class="small">
        <input
          type="checkbox"
          checked={Boolean(link.police)}
          onChange={(event) => set(`${at}.police`, event.currentTarget.checked ? `{ rate = ${JSON.stringify(typeof link.rate === "string" ? link.rate : "10 Mbit/s")}, burst = "60 kB" }` : undefined)}
        />{" "}
        policer
      </label>
    </div>
  );
}

function Slider({ control, moved, set }: { control: Control; moved: boolean; set(path: string, value?: string): void }) {
  const { path, words, quantity } = control;
  const [typed, setTyped] = useState(quantity.text);
  useEffect(() => setTyped(quantity.text), [quantity.text]);
  const to = (value: string | number) => set(path, assigned(value));
  return (
    <div class="slider">
      <label for={path}>{words}</label>
      <input
        type="text"
        aria-label={`${words}, ${path}`}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onChange={(event) => {
          const value = event.currentTarget.value.trim();
          to(/^[0-9.e+-]+$/i.test(value) ? Number(value) : value);
        }}
      />
      <input
        id={path}
        type="range"
        min={0}
        max={Quantity.steps}
        value={quantity.position}
        aria-valuetext={quantity.text}
        onInput={(event) => to(quantity.at(Number(event.currentTarget.value)))}
      />
      <button type="button" class="reset" disabled={!moved} title={`${path} as in the file`} aria-label={`${words}: as in the file`} onClick={() => set(path)}>
        ↺
      </button>
    </div>
  );
}

/** Sliders for what the scenario's links have, and for the run. */
export function Controls({ outline, state, set }: { outline: Outline; state: State; set(path: string, value?: string): void }) {
  const links = Object.entries(outline.scenario.links ?? {});
  links.sort(([, a], [, b]) => Number(isLossy(b)) - Number(isLossy(a)));
  const moved = new Set(state.set.map(([path]) => path));
  const run = leaves(outline.scenario.duration, "duration", "stops after");
  return (
    <>
      {links.map(([name, link], at) => (
        <details class="group" open={at === 0 || isLossy(link)} key={name}>
          <summary>
            link {name}: {(link.ends as string[]).join(" to ")}
          </summary>
          {link.medium === undefined && <Forms name={name} link={link} set={set} />}
          {ofLink(name, link).map((control) => (
            <Slider key={control.path} control={control} moved={moved.has(control.path)} set={set} />
          ))}
        </details>
      ))}
      <details class="group">
        <summary>run</summary>
        {run.map((control) => (
          <Slider key={control.path} control={control} moved={moved.has(control.path)} set={set} />
        ))}
        <div class="slider">
          <label for="seed">seed</label>
          <NumberField id="seed" min={0} value={outline.seed} take={(seed) => set("seed", String(Math.floor(seed)))} />
        </div>
      </details>
    </>
  );
}
