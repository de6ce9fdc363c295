import { useEffect, useState } from "preact/hooks";
import { App } from "./app";
import type { Engine } from "./engine";
import { Figures, named } from "./figures";
import type { State } from "./state";
import { Watch } from "./watch";

type Tab = "watch" | "simulate" | "reproduce";

/** The simulator, the figures of published works, and the live node where the page was served with one. */
export function Lab({ engine, ready, node, watches }: { engine: Engine; ready: Promise<string>; node: boolean; watches: boolean }) {
  const [tab, setTab] = useState<Tab>(named(location.hash) ? "reproduce" : node && watches ? "watch" : "simulate");
  // What was shown once goes on where it was; the simulator does not begin for who only watches.
  const [shown, setShown] = useState<Tab[]>([tab]);
  const [given, setGiven] = useState<State>();
  const show = (tab: Tab) => {
    setTab(tab);
    setShown((shown) => (shown.includes(tab) ? shown : [...shown, tab]));
  };
  useEffect(() => {
    const turn = () => named(location.hash) && show("reproduce");
    addEventListener("hashchange", turn);
    return () => removeEventListener("hashchange", turn);
  }, []);
  const all: [Tab, string][] = [["watch", "Watch"], ["simulate", "Simulate"], ["reproduce", "Reproduce"]];
  const tabs = (
    <nav aria-label="What is shown" class="row">
      {all.filter(([name]) => node || name !== "watch").map(([name, words]) => (
        <button type="button" class={name === tab ? "tab on" : "tab"} {...(name === tab ? { "aria-current": "page" as const } : {})} onClick={() => show(name)}>
          {words}
        </button>
      ))}
    </nav>
  );
  const open = (state: State) => {
    setGiven(state);
    show("simulate");
  };
  const looks = (name: Tab) => tab === name;
  return (
    <>
      {shown.includes("watch") && (
        <div hidden={!looks("watch")}>
          <Watch tabs={tabs} looks={looks("watch")} />
        </div>
      )}
      {shown.includes("simulate") && (
        <div hidden={!looks("simulate")}>
          <App engine={engine} ready={ready} tabs={tabs} looks={looks("simulate")} {...(given ? { given } : {})} />
        </div>
      )}
      {shown.includes("reproduce") && (
        <div hidden={!looks("reproduce")}>
          <Figures engine={engine} ready={ready} tabs={tabs} looks={looks("reproduce")} open={open} />
        </div>
      )}
    </>
  );
}
