import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { defineConfig } from "vite";

/** Of all that the page is made of. python/tests/test_site.py computes it, too. */
function sources(): string {
  const own = readdirSync("src").map((name) => `src/${name}`);
  const files = ["index.html", "package-lock.json", "vite.config.ts", ...own].sort();
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(file));
  return hash.digest("hex");
}

// Classic scripts beside the page, by relative names: modules and fetched files do not load from `file://`.
export default defineConfig({
  base: "./",
  build: {
    outDir: "site",
    // `make site` puts simulator.js there.
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: {
      input: "src/main.tsx",
      output: {
        format: "iife",
        entryFileNames: "lab.js",
        assetFileNames: "lab[extname]",
        codeSplitting: false,
      },
    },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [
    {
      name: "page",
      closeBundle() {
        const script = readFileSync("site/lab.js", "utf8");
        writeFileSync("site/lab.js", `// Made by \`make page\` of sources ${sources()}\n${script}`);
        writeFileSync("site/index.html", readFileSync("index.html"));
      },
    },
  ],
});
