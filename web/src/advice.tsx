import { useEffect, useState } from "preact/hooks";
import { offer } from "./files";
import { type State, advise, reload } from "./node";

/** What was asked of the node, and what it said. */
type Reload = { shown: string[] } | { done: string[] } | { wrong: string } | undefined;

function Changes({ changes }: { changes: string[] }) {
  return (
    <ul>
      {changes.map((change) => (
        <li>{change}</li>
      ))}
    </ul>
  );
}

/** A reload of the advised file: first what it would change, and after a second click the changes. */
function Apply({ state, file, text }: { state: State; file: string; text: string }) {
  const [said, setSaid] = useState<Reload>();
  const [busy, setBusy] = useState(false);
  // Other advice is another reload.
  useEffect(() => setSaid(undefined), [file]);
  const ask = async (shown?: string[]) => {
    setBusy(true);
    try {
      const changes = await reload(shown);
      setSaid(shown ? { done: changes } : { shown: changes });
    } catch (error) {
      setSaid({ wrong: (error as Error).message });
    }
    setBusy(false);
  };
  const cannot = busy || state.away !== null || state.read_only !== null;
  const name = state.file?.split("/").at(-1) ?? "advised.toml";
  return (
    <>
      <div class="row">
        <button type="button" disabled={cannot} onClick={() => ask()}>
          Show what a reload would change
        </button>
        <button type="button" onClick={() => offer(name, file)}>
          Save the advised file
        </button>
      </div>
      <div role="status">
        {said && "wrong" in said && <p class="fault">{said.wrong}</p>}
        {said && "shown" in said && said.shown.length === 0 && <p>A reload would change nothing.</p>}
        {said && "shown" in said && said.shown.length > 0 && (
          <>
            <p>A reload would make these changes:</p>
            <Changes changes={said.shown} />
            <button type="button" class="strong" disabled={cannot} onClick={() => ask(said.shown)}>
              Apply these changes to the running node
            </button>
          </>
        )}
        {said && "done" in said && (
          <>
            <p>The node has applied:</p>
            <Changes changes={said.done} />
            <p>
              Its file is as it was: save the advised file as <code>{state.file}</code>, so that a new start has the changes as well.
            </p>
          </>
        )}
      </div>
      <p>
        This changes this end alone. A service stays unused until the other end has it, too. There, with the same recordings and its file as
        OTHER.toml:
      </p>
      <pre class="command" tabIndex={0} role="region" aria-label="At the other end">
        {atTheOtherEnd(text)}
      </pre>
    </>
  );
}

/** The same advice for the file of the other end, as commands. */
function atTheOtherEnd(text: string): string {
  const again = /^Again: (.*)$/m.exec(text)?.[1] ?? "airlane advise";
  const advise = again.replace(/ --file ('[^']*'|\S+)/, " --file OTHER.toml");
  return `${advise} --write ADVISED.toml\nairlane reload ADVISED.toml --dry-run\nairlane reload ADVISED.toml`;
}

/** What `airlane advise` says of a recording. */
export function Advice({ state }: { state: State }) {
  const [files, setFiles] = useState<File[]>([]);
  const [words, setWords] = useState({ apps: "", want: "", "round-trip": "" });
  const [wrong, setWrong] = useState("");
  const { advice, file } = state;
  const busy = advice.is === "coming" || advice.is === "simulated";
  const field = (key: keyof typeof words, label: string, hint: string) => (
    <label class="field">
      {label}
      <input type="text" value={words[key]} placeholder={hint} onInput={(event) => setWords({ ...words, [key]: event.currentTarget.value })} />
    </label>
  );
  const ask = async (event: Event) => {
    event.preventDefault();
    setWrong("");
    try {
      await advise(files, words);
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  return (
    <section aria-labelledby="advice">
      <h2 id="advice">Advice</h2>
      <p>
        Which settings would be better? Record the link while it is used, at both ends at once, and choose the files here. They stay on this
        machine.
      </p>
      <pre class="command" tabIndex={0} role="region" aria-label="How to record">{`airlane record link.trace ${state.socket} --for 5min`}</pre>
      <form onSubmit={ask}>
        <div class="row">
          <label class="field">
            recording of this end, or of both ends
            <input type="file" multiple onChange={(event) => setFiles([...(event.currentTarget.files ?? [])])} />
          </label>
          {field("apps", "who uses the link", "file,pages,call")}
          {field("want", "what must hold", "pages<=300ms,call-loss<=1%")}
          {field("round-trip", "round trip, of one end's recording", "50 ms")}
        </div>
        <button type="submit" disabled={busy || files.length === 0}>
          Ask for advice
        </button>
      </form>
      <p role="status" class="small">
        {advice.is === "coming" && "Reading the recording."}
        {advice.is === "simulated" && `Simulated: ${advice.done} of ${advice.all || "…"} runs.`}
      </p>
      {wrong && advice.is !== "failed" && (
        <p class="fault" role="alert">
          {wrong}
        </p>
      )}
      {advice.is === "failed" && (
        <p class="fault" role="alert">
          {advice.why}
        </p>
      )}
      {advice.is === "given" && (
        <>
          <pre class="command advised" tabIndex={0} role="region" aria-label="Advised changes">
            {advice.text}
          </pre>
          {advice.file !== null && <Apply state={state} file={advice.file} text={advice.text} />}
        </>
      )}
      {file === null && (
        <p class="small">
          A change can be applied here if the node's file is known: <code>airlane lab FILE</code> in place of the name of the link.
        </p>
      )}
      {state.read_only && <p class="warning">{state.read_only}</p>}
    </section>
  );
}
