import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { defineConfig } from "vite";

/** Of all that the page is made of. python/tests/test_site.py computes it, too. */
function sources(): string {
  const own = readdirSync("src").map((name) => `src/${name}`);
  const files = ["index.html", "package-lock.json", "vite.config.ts", ...own].sort();
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(file));
  return hash.digest("hex");
}

/** The text of a licence in a folder; where a library ships none, that of MIT for its authors. */
function text(folder: string, { name, license, by }: { name: string; license: string; by: string }): string {
  const found = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isFile());
  const files = found.map((one) => one.name).filter((file) => /^(licen[cs]e|copying)/i.test(file)).sort();
  const file = files.find((file) => /mit/i.test(file)) ?? files[0];
  if (file !== undefined) return readFileSync(`${folder}/${file}`, "utf8").trim();
  if (!/\bMIT\b/.test(license)) throw new Error(`${name} ships no text of its licence`);
  const mit = readFileSync("../LICENSE-MIT", "utf8");
  return `${by}\n\n${mit.slice(mit.indexOf("Permission")).trim()}`;
}

/** Of all libraries in the page: those in a worker, which Vite's own list lacks, too. */
function libraries(): string[][] {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
  const shipped = Object.keys(packages).filter((path) => path && !packages[path].dev);
  return shipped.sort().map((path) => {
    const { name, version, license, author, main } = JSON.parse(readFileSync(`${path}/package.json`, "utf8"));
    // A library without a text of its licence names its authors in its script.
    const banner = /^\/\*!([^]*?)\*\//.exec(readFileSync(`${path}/${main}`, "utf8"))?.[1] ?? "";
    const by = `Copyright (c) ${author}\n${banner.replace(/^ \* ?/gm, "").trimEnd()}`;
    return [`${name} - ${version} (${license})`, text(path, { name, license, by })];
  });
}

/** Of all crates in the simulator. */
function crates(): string[][] {
  const cargo = (...words: string[]) =>
    execFileSync("cargo", [...words, "--locked"], { encoding: "utf8", maxBuffer: 1 << 28 });
  const { packages } = JSON.parse(cargo("metadata", "--format-version", "1"));
  const of = ["-p", "airlane-web", "--target", "wasm32-unknown-unknown", "-e", "normal,no-proc-macro"];
  const shipped = new Set(cargo("tree", ...of, "--prefix", "none", "--format", "{p}").split("\n"));
  return packages
    .filter((one: Crate) => one.source !== null && shipped.has(`${one.name} v${one.version}`))
    .map(({ name, version, license, authors, manifest_path }: Crate) => {
      const by = `Copyright (c) ${authors.join(", ") || `the authors of ${name}`}`;
      return [`${name} - ${version} (${license})`, text(dirname(manifest_path), { name, license, by })];
    });
}

interface Crate {
  name: string;
  version: string;
  license: string;
  authors: string[];
  source: string | null;
  manifest_path: string;
}

/** Libraries with the same text stand together. */
function licences(): string {
  const same = new Map<string, string[]>();
  for (const [name, text] of [...libraries(), ...crates()]) same.set(text!, [...(same.get(text!) ?? []), name!]);
  const all = [...same].map(([text, names]) => `## ${names.join("\n## ")}\n\n${text}`);
  return `Licences of the libraries in lab.js and of the crates in simulator.js\n\n${all.join("\n\n")}\n`;
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
