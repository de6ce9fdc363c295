/** The glossary's words with their meanings. */
export function words(glossary: string): [string, string][] {
  return [...glossary.matchAll(/^\| ([^|]+) \| ([^|]+) \|$/gm)]
    .map(([, word, meaning]): [string, string] => [word!.replaceAll("`", ""), meaning!.replace(/\[([^\]]+)\]\([^)]+\)/g, "$1")])
    .filter(([word]) => word !== "word" && !/^-+$/.test(word));
}

export function Words({ glossary }: { glossary: string }) {
  return (
    <section>
      <details>
        <summary>
          <h2>Words</h2>
        </summary>
        <dl class="words">
          {words(glossary).map(([word, meaning]) => (
            <div>
              <dt>{word}</dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  );
}
