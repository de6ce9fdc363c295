/** The text of each shipped scenario by its name, once the simulator has said so. */
export const SCENARIOS = new Map<string, string>();

/** `name = ".."` of a scenario. */
export function title(text: string): string {
  return /^name = "(.*)"/m.exec(text)?.[1] ?? "";
}
