import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { defineConfig } from "vite";

/** Of all that the page is made of. python/tests/test_site.py computes it, too. */
function sources(): string {
  const own = readdirSync("src").map((name) => `src/${name}`);
  const files = ["index.html", "package-lock.json", "vite.config.ts", ...own].sort();
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(file));
  return hash.digest("hex");
}

/** The licence of a library; one that ships no text of it names its authors in its script. */
function licence(path: string): string {
  const { name, version, license, author, main } = JSON.parse(readFileSync(`${path}/package.json`, "utf8"));
  const head = `## ${name} - ${version} (${license})\n\n`;
  if (existsSync(`${path}/LICENSE`)) return head + readFileSync(`${path}/LICENSE`, "utf8").trim();
  if (license !== "MIT") throw new Error(`${name} ships no text of its licence`);
  const banner = /^\/\*!([^]*?)\*\//.exec(readFileSync(`${path}/${main}`, "utf8"))?.[1] ?? "";
  const mit = readFileSync("../LICENSE-MIT", "utf8");
  return `${head}Copyright (c) ${author}\n${banner.replace(/^ \* ?/gm, "").trimEnd()}\n\n${mit.slice(mit.indexOf("Permission")).trim()}`;
}

/** Of all libraries in the page: those in a worker, which Vite's own list lacks, too. */
function licences(): string {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
  const shipped = Object.keys(packages).filter((path) => path && !packages[path].dev);
  return `Licences of the libraries in lab.js\n\n${shipped.sort().map(licence).join("\n\n")}\n`;
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
        writeFileSync("site/licences.txt", licences());
        writeFileSync("site/index.html", readFileSync("index.html"));
      },
    },
  ],
});
