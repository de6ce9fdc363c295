import { useState } from "preact/hooks";
import { App } from "./app";
import type { Engine } from "./engine";
import { Watch } from "./watch";

type Tab = "watch" | "simulate";

/** The simulator, and beside it the live node where the page was served with one. */
export function Lab({ engine, ready, node, watches }: { engine: Engine; ready: Promise<string>; node: boolean; watches: boolean }) {
  const [tab, setTab] = useState<Tab>(node && watches ? "watch" : "simulate");
  // What was shown once goes on where it was; the simulator does not begin for who only watches.
  const [shown, setShown] = useState<Tab[]>([tab]);
  if (!node) return <App engine={engine} ready={ready} />;
  const show = (tab: Tab) => {
    setTab(tab);
    setShown((shown) => (shown.includes(tab) ? shown : [...shown, tab]));
  };
  const tabs = (
    <nav aria-label="What is shown" class="row">
      {([["watch", "Watch"], ["simulate", "Simulate"]] as const).map(([name, words]) => (
        <button type="button" class={name === tab ? "tab on" : "tab"} {...(name === tab ? { "aria-current": "page" as const } : {})} onClick={() => show(name)}>
          {words}
        </button>
      ))}
    </nav>
  );
  return (
    <>
      {shown.includes("watch") && (
        <div hidden={tab !== "watch"}>
          <Watch tabs={tabs} looks={tab === "watch"} />
        </div>
      )}
      {shown.includes("simulate") && (
        <div hidden={tab !== "simulate"}>
          <App engine={engine} ready={ready} tabs={tabs} />
        </div>
      )}
    </>
  );
}
