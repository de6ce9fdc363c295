import { useState } from "preact/hooks";
import type { Engine } from "./engine";
import { NumberField } from "./number";
import type { Start } from "./protocol";
import { type State, own } from "./state";

type From = "tc" | "live" | "recording";

/** Scenarios that are made of what somebody has: settings of `tc`, a live file, a recorded link. */
export function Starts({ engine, start }: { engine: Engine; start(state: State): void }) {
  const [from, setFrom] = useState<From>("tc");
  const [tc, setTc] = useState({ text: "tc qdisc add dev eth0 root netem delay 25ms loss 5% rate 20mbit", device: "", reverse: "", reverse_device: "" });
  const [files, setFiles] = useState<File[]>([]);
  const [link, setLink] = useState({ rate: "20 Mbit/s", delay: "25 ms", loss: 1 });
  const [notes, setNotes] = useState<string[]>([]);
  const [wrong, setWrong] = useState("");
  const make = async (): Promise<[string, Start]> => {
    if (from === "tc") return ["tc-link", await engine.ask({ ask: "tc", ...tc }, 0)];
    if (from === "live") {
      const [file] = files;
      const text = await file!.text();
      return ["live-file", await engine.ask({ ask: "live", text, file: file!.name, rate: link.rate, delay: link.delay, loss: link.loss / 100 }, 0)];
    }
    const recordings = files.map(({ name, size }) => ({ name, bytes: size }));
    return ["recorded-link", await engine.ask({ ask: "recording", recordings }, 0, undefined, files)];
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setWrong("");
    setNotes([]);
    try {
      const [name, { text, notes }] = await make();
      setNotes(notes);
      start(own(name, text));
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  const word = (key: "rate" | "delay", label: string) => (
    <label class="field">
      {label}
      <input type="text" value={link[key]} onInput={(event) => setLink({ ...link, [key]: event.currentTarget.value })} />
    </label>
  );
  const setting = (key: keyof typeof tc, label: string, rows?: number) => (
    <label class="field">
      {label}
      {rows ? (
        <textarea rows={rows} spellcheck={false} value={tc[key]} onInput={(event) => setTc({ ...tc, [key]: event.currentTarget.value })} />
      ) : (
        <input type="text" value={tc[key]} onInput={(event) => setTc({ ...tc, [key]: event.currentTarget.value })} />
      )}
    </label>
  );
  return (
    <details class="group">
      <summary>start from your own link</summary>
      <form onSubmit={submit} class="upright">
        <label class="field">
          what you have
          <select
            value={from}
            onChange={(event) => {
              setFrom(event.currentTarget.value as From);
              setFiles([]);
            }}
          >
            <option value="tc">settings of tc (netem)</option>
            <option value="live">the live file of a node</option>
            <option value="recording">recordings of a link</option>
          </select>
        </label>
        {from === "tc" && (
          <>
            {setting("text", "what you type, or what tc qdisc show prints", 4)}
            {setting("device", "interface, if there are several")}
            {setting("reverse", "the same of the other direction, if it is set", 2)}
            {setting("reverse_device", "interface of the other direction, if there are several")}
          </>
        )}
        {from !== "tc" && (
          <label class="field">
            {from === "live" ? "live file" : "recording of airlane record, or of each end"}
            <input key={from} type="file" multiple={from === "recording"} onChange={(event) => setFiles([...(event.currentTarget.files ?? [])])} />
          </label>
        )}
        {from === "live" && (
          <div class="row">
            {word("rate", "rate of the link")}
            {word("delay", "one-way delay")}
            <label class="field">
              lost frames, %
              <NumberField min={0} max={100} step="any" value={link.loss} take={(loss) => setLink({ ...link, loss })} />
            </label>
          </div>
        )}
        <button type="submit" disabled={from !== "tc" && files.length === 0}>
          Simulate it
        </button>
        <p class="small">{from === "tc" ? "The link loses and delays what the interfaces send." : "Files stay on this machine."}</p>
        {wrong && (
          <p class="fault" role="alert">
            {wrong}
          </p>
        )}
        <div role="status">{notes.map((note) => <p class="warning">{note}</p>)}</div>
      </form>
    </details>
  );
}
