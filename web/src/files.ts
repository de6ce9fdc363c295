/** Lets the user keep a file. */
export function offer(name: string, content: string | Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function csv(rows: (number | string | null)[][]): string {
  const cell = (value: number | string | null) => {
    const text = value === null ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

const LOOKS = ["fill", "stroke", "stroke-width", "paint-order", "font-size"];

/** The picture in an element, as it is drawn. */
export function offerPicture(place: Element, name: string, form: "svg" | "png"): void {
  const drawn = place.querySelector("svg");
  if (!drawn) return;
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const { width, height } = drawn.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  // What the page's style sheet says of it.
  const [shown, kept] = [drawn, copy].map((svg) => [svg, ...svg.querySelectorAll("*")]) as [Element[], Element[]];
  for (const [n, element] of shown.entries()) {
    const style = getComputedStyle(element);
    for (const name of LOOKS) kept[n]!.setAttribute(name, style.getPropertyValue(name));
  }
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  const text = new XMLSerializer().serializeToString(copy);
  if (form === "svg") return offer(`${name}.svg`, text);
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob && offer(`${name}.png`, blob));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}
