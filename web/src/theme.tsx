function turn(): void {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

export function Theme() {
  return (
    <button type="button" onClick={turn}>
      Dark or light
    </button>
  );
}
